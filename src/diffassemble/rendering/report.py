"""One page about an assembly: pictures, settings, versions, how to continue. It needs no network."""

from __future__ import annotations

import base64
import os
import platform
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from html import escape
from importlib.metadata import version
from importlib.resources import files
from string import Template
from threading import Lock
from typing import NamedTuple

from PIL import Image

from diffassemble.assembly.answer import Answer
from diffassemble.assembly.kind import Join
from diffassemble.core import Puzzle
from diffassemble.core.placements import STATUSES, UNPLACED
from diffassemble.core.thresholds import SURE, UPRIGHT
from diffassemble.io.pictures import png_bytes
from diffassemble.kinds import kind_of
from diffassemble.rendering.animation import encode_gif
from diffassemble.rendering.picture import STYLE

_UNSHOWN = "<p>Unplaced fragments are not shown here.</p>"
_HOW_TO_READ = """<p>Each picture shows a fragment, on the left, and the neighbour that it touches most, taken apart and
opened like a book, so that you see both breaks. Where the two touch when they are put together, both are magenta. In a
right join magenta covers most of the break between the two and has the same outline on both, mirrored. If there are
only spots of it, or it is on a smooth rim instead of a rough break, check the join. The least certain are first.</p>"""

Rows = Sequence[tuple[str, str]]


class Pictures:
    """The pictures of one assembly, each drawn when it is first asked for: PNG files, `steps` an animated GIF.

    Of `views`, `plan`, `joins` and `next_joins` there are none for some kinds; see `Drawing`.
    """

    def __init__(self, assembly: Answer) -> None:
        self.assembly = assembly
        self._drawing = kind_of(assembly.puzzle).drawing()
        self._lock = Lock()

    @property
    def shown(self) -> Answer:
        """The assembly as it is drawn: upright, where that is known. Threads wait for the first that asks."""
        with self._lock:
            return self._standing

    _standing = cached_property(lambda self: self._drawing.standing(self.assembly))
    assembled = cached_property(lambda self: png_bytes(self._drawing.assembly(self.shown)))
    before_after = cached_property(lambda self: png_bytes(self._drawing.before_after(self.shown)))
    confidence = cached_property(lambda self: png_bytes(self._drawing.confidence(self.shown)))
    views = cached_property(lambda self: _png(self._drawing.views(self.shown)))
    plan = cached_property(lambda self: _png(self._drawing.plan(self.shown)))
    joins = cached_property(lambda self: _join_pictures(self._drawing.joins(self.assembly)))
    next_joins = cached_property(lambda self: _join_pictures(self._drawing.next_joins(self.shown)))
    steps = cached_property(lambda self: encode_gif(self._drawing.animation(self.shown, STYLE.frames)))

    def drawn(self) -> Iterator[str]:
        """Draw all of them, each once, in parallel threads; yields their names as they are done."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            names = ("assembled", "steps", "before_after", "views", "confidence", "joins", "plan", "next_joins")
            for name, job in [(name, pool.submit(getattr, self, name)) for name in names]:
                job.result()
                yield name


def _png(picture: Image.Image | None) -> bytes | None:
    return None if picture is None else png_bytes(picture)


class JoinPicture(NamedTuple):
    """Two pieces that touch, a picture of how (PNG), and what to do, if it is a join to make."""

    piece: int
    neighbour: int
    picture: bytes
    words: str


def _join_pictures(joins: Sequence[Join]) -> list[JoinPicture]:
    return [JoinPicture(join.piece, join.neighbour, png_bytes(join.picture), join.words) for join in joins]


def picture_of(shown: Puzzle | Answer) -> bytes:
    """A PNG file of the pieces as they were given, or of what was assembled, as notebooks show it."""
    if isinstance(shown, Puzzle):
        return png_bytes(kind_of(shown).drawing().pieces(shown))
    return Pictures(shown).assembled


def report_html(pictures: Pictures, settings: Rows = ()) -> str:
    """A self-contained page about one assembly."""
    assembly, puzzle = pictures.assembly, pictures.assembly.puzzle
    kind, board = kind_of(puzzle), puzzle.lattice
    score, locked = kind.score(assembly), 0 if puzzle.locks is None else int(puzzle.locks.held.sum())
    facts = [
        ("pieces", str(len(puzzle))),
        ("solver", assembly.solver),
        ("seconds", f"{assembly.seconds:.1f}"),
        *([] if board is None else [("grid", f"{board.rows}x{board.cols}")]),
        *([("locked", str(locked))] if locked else []),
        *([("extra, do not belong", ", ".join(assembly.extra))] if assembly.extra else []),
        *account(assembly),
        *([] if score is None else [("score", score)]),
    ]
    sections = {
        "Before and after": embedded(pictures.before_after, "before and after"),
        "From three sides": pictures.views and embedded(pictures.views, "views") + _UNSHOWN,
        "Confidence of each piece": embedded(pictures.confidence, "confidence") + doubtful(assembly),
        "Joins to check": pictures.joins and _join_figures(pictures),
        "A plan to lay the pieces by": pictures.plan and embedded(pictures.plan, "plan"),
        "The most certain joins to make next": "\n".join(
            _figure(join.picture, join.words, escape(join.words)) for join in pictures.next_joins
        ),
        "On the way": embedded(pictures.steps, "steps", "gif"),
        "How to open the result": _text(f"opening-{kind.name}.html"),
        "Settings": table([*settings, *versions()]),
    }
    shown = [section(title, str(content)) for title, content in sections.items() if content]
    return page("What was put together", [table(facts), *shown])


def doubtful(assembly: Answer) -> str:
    """A table of the least certain pieces, of those that are not sure: name, confidence, status and reason."""
    count, trust = len(assembly.puzzle), assembly.placements.trust
    if bool((trust >= SURE).all()):
        return f"<p>All {count} are sure: {float(trust.min()):.2f} or more.</p>"
    columns = assembly.status, assembly.notes or ("",) * count
    rows = zip(assembly.puzzle.names, trust.tolist(), *columns, strict=True)
    lines = [
        f'<tr><td>{escape(name)}</td><td class="number">{sure:.2f}</td><td>{status}</td><td>{escape(note)}</td></tr>'
        for name, sure, status, note in sorted(rows, key=lambda row: row[1])[: STYLE.doubtful_rows]
        if sure < SURE
    ]
    return "<p>The most doubtful first:</p><table>" + "\n".join(lines) + "</table>"


def _join_figures(pictures: Pictures) -> str:
    """The joins, each with both names, the confidence of the first piece, and how to read it."""
    names, figures = pictures.assembly.puzzle.names, []
    for piece, neighbour, picture, _ in pictures.joins:
        own = pictures.assembly.placements.placement(piece)
        certain = own.status if own.confidence is None else f"confidence {own.confidence:.2f}, {own.status}"
        words = f"<b>{escape(names[piece])}</b> (left) and {escape(names[neighbour])}<br>{certain}"
        figures.append(_figure(picture, f"join of {names[piece]} and {names[neighbour]}", words))
    return _HOW_TO_READ + "\n".join(figures)


def _figure(picture: bytes, alt: str, caption: str) -> str:
    return f"<figure>{embedded(picture, alt)}<figcaption>{caption}</figcaption></figure>"


def account(assembly: Answer) -> list[tuple[str, str]]:
    """Headings and names: grids, which way is up, several objects, and the status of each piece, with reasons.

    Solvers that place all pieces leave only which way is up.
    """
    found, note = assembly.placements, upright_note(assembly)
    probability = f"probability {100 * (found.upright or 0):.0f} %" + (f"; {note}" if note else "")
    upright = [] if found.upright is None else [("upright", probability)]
    if found.objects is None:
        return upright
    names, count = assembly.puzzle.names, int(found.objects.max()) + 1
    notes = assembly.notes or ("",) * len(names)
    listed_by: dict[str, list[str]] = {f"object {number + 1}": [] for number in range(count) if count > 1}
    listed_by |= {status: [] for status in STATUSES if status != UNPLACED}
    rows = zip(names, found.status, found.objects.tolist(), found.trust.tolist(), notes, strict=True)
    for name, status, own, sure, reason in rows:
        if count > 1 and own >= 0:
            listed_by[f"object {own + 1}"].append(name)
        if status == UNPLACED:
            listed_by.setdefault(f"{UNPLACED}, {plain_reason(reason) or 'fits nowhere'}", []).append(name)
        else:
            doubt = "; ".join(text for text in (f"{sure:.2f}", reason) if text)
            listed_by[status].append(name if sure >= SURE else f"{name} ({doubt})")
    grids = [
        (f"grid found{f' in object {number + 1}' if count > 1 else ''}", f"{rows} rows × {cols} columns")
        for number, (rows, cols) in assembly.grids.items()
    ]
    return [*grids, *upright, *((heading, listed(pieces)) for heading, pieces in listed_by.items() if pieces)]


def plain_reason(note: str) -> str:
    """The reason why a piece is unplaced, without the word itself, with which some notes begin."""
    return note.removeprefix("left out: ").removeprefix(f"{UNPLACED}: ")


def upright_note(assembly: Answer) -> str | None:
    """What is not known about which way is up; nothing if it is sure, or determined by locked pieces."""
    if (assembly.puzzle.lattice is None and not assembly.puzzle.pieces.flat) or assembly.puzzle.locks is not None:
        return None
    upright = assembly.placements.upright
    if upright is None:
        return "which way is up is not known"
    return "which way is up is a guess" if upright < UPRIGHT else None


def listed(names: Sequence[str]) -> str:
    """Names one after another, the first dozen and how many more there are."""
    more = len(names) - STYLE.names
    text = ", ".join(names[: STYLE.names])
    return f"{text} and {more} more" if more > 0 else text


def page(title: str, parts: Sequence[str]) -> str:
    """The frame around all reports."""
    frame = Template(_text("report.html"))
    return frame.substitute(title=escape(title), content="\n".join(parts))


def _text(name: str) -> str:
    return (files("diffassemble.rendering") / name).read_text()


def versions() -> list[tuple[str, str]]:
    """What the result depends on."""
    names = ("diffassemble", "torch", "torch_geometric", "numpy")
    return [*((name, version(name)) for name in names), ("Python", platform.python_version())]


def section(title: str, content: str) -> str:
    """A heading and its content."""
    return f"<h2>{escape(title)}</h2>\n{content}"


def embedded(content: bytes, alt: str, kind: str = "png") -> str:
    """The content of a picture's file within the page."""
    return f'<img alt="{escape(alt)}" src="data:image/{kind};base64,{base64.b64encode(content).decode()}">'


def table(rows: Rows) -> str:
    """Names and values."""
    lines = [f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in rows]
    return "<table>" + "\n".join(lines) + "</table>"
