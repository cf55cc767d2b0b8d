"""One page that tells what was done: pictures, settings, versions, how to go on. It needs no network."""

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

from diffassemble.assembly.answer import Answer
from diffassemble.core.placements import STATUSES, UNPLACED
from diffassemble.core.thresholds import SURE, UPRIGHT
from diffassemble.io.pictures import png_bytes
from diffassemble.kinds import kind_of
from diffassemble.rendering.animation import encode_gif
from diffassemble.rendering.picture import STYLE

_WITHOUT = "<p>Unplaced fragments are not shown here.</p>"
_HOW_TO_READ = """Each picture shows a fragment, on the left, and the neighbour that it touches most, taken apart and
opened like a book, so that both breaks look at you. Where the two touch when they are put together, both are magenta.
In a right join it covers most of the break between the two and has the same outline on both, mirrored. If there are
only spots of it, or it lies on a smooth rim instead of a rough break, look again. The least sure come first."""

Rows = Sequence[tuple[str, str]]


class Pictures:
    """The pictures of one assembly as the contents of files, each drawn when it is first asked for, and only then."""

    def __init__(self, assembly: Answer) -> None:
        self.assembly = assembly
        self._drawing = kind_of(assembly.puzzle).drawing()
        self._lock = Lock()

    @cached_property
    def _standing(self) -> Answer:
        return self._drawing.standing(self.assembly)

    @property
    def shown(self) -> Answer:
        """The assembly as it is drawn: upright, where that is known. Threads wait for the first that asks."""
        with self._lock:
            return self._standing

    @cached_property
    def assembled(self) -> bytes:
        """What was assembled, and nothing else (PNG)."""
        return png_bytes(self._drawing.assembly(self.shown))

    @cached_property
    def before_after(self) -> bytes:
        """The pieces as they were given beside what became of them (PNG)."""
        return png_bytes(self._drawing.before_after(self.shown))

    @cached_property
    def confidence(self) -> bytes:
        """How sure each piece is (PNG)."""
        return png_bytes(self._drawing.confidence(self.shown))

    @cached_property
    def views(self) -> bytes | None:
        """What was assembled from several sides (PNG), if it has any."""
        picture = self._drawing.views(self.shown)
        return None if picture is None else png_bytes(picture)

    @cached_property
    def joins(self) -> list[tuple[int, int, bytes]]:
        """Pieces, neighbours that they touch, and how (PNG)."""
        return [(join.piece, join.neighbour, png_bytes(join.picture)) for join in self._drawing.joins(self.assembly)]

    @cached_property
    def plan(self) -> bytes | None:
        """Numbers and turns at their places (PNG), if people lay real pieces by it."""
        picture = self._drawing.plan(self.shown)
        return None if picture is None else png_bytes(picture)

    @cached_property
    def next_joins(self) -> list[tuple[bytes, str]]:
        """Joins to make next (PNG), and what to do."""
        return [(png_bytes(join.picture), join.words) for join in self._drawing.next_joins(self.shown)]

    @cached_property
    def steps(self) -> bytes:
        """Pieces on their way to their places (GIF)."""
        return encode_gif(self._drawing.animation(self.shown, STYLE.frames))

    def drawn(self) -> Iterator[str]:
        """Draw all of them, each once, in threads beside each other; yields their names as they are there."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            names = ("assembled", "steps", "before_after", "views", "confidence", "joins", "plan", "next_joins")
            for name, job in [(name, pool.submit(getattr, self, name)) for name in names]:
                job.result()
                yield name


def report_html(pictures: Pictures, settings: Rows = ()) -> str:
    """A self-contained page about one assembly."""
    assembly, puzzle = pictures.assembly, pictures.assembly.puzzle
    kind = kind_of(puzzle)
    facts = [("pieces", str(len(puzzle))), ("solver", assembly.solver), ("seconds", f"{assembly.seconds:.1f}")]
    facts += kind.facts(puzzle)
    if puzzle.locks is not None:
        facts.append(("locked", str(int(puzzle.locks.held.sum()))))
    if assembly.extra:
        facts.append(("extra, do not belong", ", ".join(assembly.extra)))
    facts += account(assembly)
    if (score := kind.score(assembly)) is not None:
        facts.append(("score", score))
    parts = [
        table(facts),
        section("Before and after", embedded(pictures.before_after, "before and after")),
        *([section("From three sides", embedded(pictures.views, "views") + _WITHOUT)] if pictures.views else []),
        section("How sure each piece is", embedded(pictures.confidence, "confidence") + doubtful(assembly)),
        *([section("Joins to check", join_figures(pictures))] if pictures.joins else []),
        *([section("A plan to lay the pieces by", embedded(pictures.plan, "plan"))] if pictures.plan else []),
        *([section("The surest joins to make next", next_figures(pictures))] if pictures.next_joins else []),
        section("On the way", embedded(pictures.steps, "steps", "gif")),
        section("How to open the result", kind.opening),
        section("Settings", table([*settings, *versions()])),
    ]
    return page("What was put together", parts)


def doubtful(assembly: Answer) -> str:
    """A table of the least sure pieces, of those that are not sure: name, confidence, status and reason."""
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


def join_figures(pictures: Pictures) -> str:
    """The joins, each with both names, how sure the first piece is, and how to read it."""
    names, found = pictures.assembly.puzzle.names, pictures.assembly.placements
    figures = []
    for piece, neighbour, picture in pictures.joins:
        both = f"<b>{escape(names[piece])}</b> (left) and {escape(names[neighbour])}"
        own = found.placement(piece)
        told = own.status if own.confidence is None else f"confidence {own.confidence:.2f}, {own.status}"
        alt = f"join of {names[piece]} and {names[neighbour]}"
        figures.append(f"<figure>{embedded(picture, alt)}<figcaption>{both}<br>{told}</figcaption></figure>")
    return f"<p>{_HOW_TO_READ}</p>" + "\n".join(figures)


def next_figures(pictures: Pictures) -> str:
    """The joins to make next, each with what to do."""
    return "\n".join(
        f"<figure>{embedded(picture, words)}<figcaption>{escape(words)}</figcaption></figure>"
        for picture, words in pictures.next_joins
    )


def account(assembly: Answer) -> list[tuple[str, str]]:
    """Which pieces are sure, likely, guessed, or unplaced and why, and what belongs to which object: headings, names.

    Of pieces of pictures, which all have a place, only which way is up. The names of objects are numbers from 1; they
    are told where there are several.
    """
    note = upright_note(assembly)
    found = assembly.placements
    words = f"{100 * (found.upright or 0):.0f} % sure" + (f"; {note}" if note else "")
    upright = [] if found.upright is None else [("upright", words)]
    if found.objects is None:
        return upright
    names, count = assembly.puzzle.names, int(found.objects.max()) + 1
    notes = assembly.notes or ("",) * len(names)
    told: dict[str, list[str]] = {f"object {number + 1}": [] for number in range(count) if count > 1}
    grids = {number: f"{rows} rows × {cols} columns" for number, (rows, cols) in assembly.grids.items()}
    told |= {status: [] for status in STATUSES if status != UNPLACED}
    rows = zip(names, found.status, found.objects.tolist(), found.trust.tolist(), notes, strict=True)
    for name, status, own, sure, note in rows:
        if count > 1 and own >= 0:
            told[f"object {own + 1}"].append(name)
        if status == UNPLACED:
            reason = note.removeprefix("left out: ").removeprefix(f"{UNPLACED}: ")
            told.setdefault(f"{UNPLACED}, {reason or 'fits nowhere'}", []).append(name)
        else:
            doubt = "; ".join(text for text in (f"{sure:.2f}", note) if text)
            told[status].append(name if sure >= SURE else f"{name} ({doubt})")
    shapes = [
        (f"grid found{f' in object {number + 1}' if count > 1 else ''}", words) for number, words in grids.items()
    ]
    return [*shapes, *upright] + [(heading, listed(pieces)) for heading, pieces in told.items() if pieces]


def upright_note(assembly: Answer) -> str | None:
    """What to know about which way is up, if it is not sure; nothing where it is, or where what is locked tells it."""
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
    frame = Template((files("diffassemble.rendering") / "report.html").read_text())
    return frame.substitute(title=escape(title), content="\n".join(parts))


def versions() -> list[tuple[str, str]]:
    """What the result depends on."""
    names = ("diffassemble", "torch", "torch_geometric", "numpy")
    return [*((name, version(name)) for name in names), ("Python", platform.python_version())]


def section(title: str, content: str) -> str:
    """A heading and what stands under it."""
    return f"<h2>{escape(title)}</h2>\n{content}"


def embedded(content: bytes, alt: str, kind: str = "png") -> str:
    """The content of a picture's file within the page."""
    return f'<img alt="{escape(alt)}" src="data:image/{kind};base64,{base64.b64encode(content).decode()}">'


def table(rows: Rows) -> str:
    """Names and values."""
    lines = [f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in rows]
    return "<table>" + "\n".join(lines) + "</table>"
