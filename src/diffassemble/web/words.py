"""The words of the page: the state of the work, what to do next, and how long it may take."""

from __future__ import annotations

import time
from typing import NamedTuple

from diffassemble.assembly.answer import Answer
from diffassemble.core.placements import STATUSES
from diffassemble.core.thresholds import SURE, UPRIGHT
from diffassemble.kinds import kind_of
from diffassemble.web.arrangement import Arrangement
from diffassemble.web.session import Session

PRIVATE = "Everything stays on this computer: nothing is sent anywhere."


class Advice(NamedTuple):
    """The state of the work in a line, and what to do next."""

    headline: str
    next: str


def advice(session: Session, uploaded: int = 0) -> Advice:
    """What to show now; `uploaded` is the number of files that are not opened yet."""
    work, now = session.work, session.now
    if work is not None:
        passed = time.monotonic() - work.began
        return Advice(f"{work.words} …", f"{time_left(work.done, passed)}{_clock(passed)} so far")
    if now is None and uploaded:
        return Advice(f"{plural(uploaded, 'file')} sent", "Choose what it is, then press Open.")
    if now is None:
        return Advice("What is to be put together?", "Drop files, or click a sample.")
    held = int(now.locked.sum())
    locked = f"{plural(held, 'piece')} locked. " if held else ""
    if now.answer is None:
        grid = "" if now.puzzle.lattice is None else f", grid {now.puzzle.board.rows}x{now.puzzle.board.cols}"
        headline = f"{plural(len(now.puzzle), kind_of(now.puzzle).piece)}{grid}"
        if session.found is not None:
            return Advice(headline, "Look at the photo: has every piece its outline? Then press Solve.")
        return Advice(headline, f"{locked}Press Solve.")
    assembly = session.assembly
    assert assembly is not None
    clock = f" Solved in {_clock(now.answer.seconds)} by {now.answer.solver}." if now.answer.seconds else ""
    return Advice(summary(assembly), _after_solving(now, assembly, locked) + clock)


def _after_solving(now: Arrangement, assembly: Answer, locked: str) -> str:
    moved, truth, found = len(now.moved_by_hand), assembly.puzzle.truth, assembly.placements
    if moved:
        return f"{plural(moved, 'piece')} moved by hand. Lock what is right and solve again, or download."
    if truth is not None and kind_of(assembly.puzzle).count_right(assembly, truth).turned:
        return "Press “Turn the whole” until it is upright."
    if locked:
        return f"{locked}Lock more and solve again, or download."
    if bool((found.trust < SURE).any()):
        return "Check the doubtful ones: drag a piece where it belongs, lock it, solve again. Or download."
    unsure = assembly.puzzle.pieces.flat and not (found.upright or 0) >= UPRIGHT
    return "Download it" + (", or turn the whole if it is the wrong way up." if unsure else ".")


def summary(assembly: Answer) -> str:
    """How many pieces are right, if the truth is known, else the numbers of each status."""
    puzzle, count = assembly.puzzle, len(assembly.puzzle)
    kind = kind_of(puzzle)
    if puzzle.truth is not None:
        right, free, by = kind.count_right(assembly, puzzle.truth)
        if free > right:
            turned = f", turned by {by}°" if by else " relative to the largest"
            return f"{_all(free, count, kind.piece)} fit together{turned}"
        return f"{_all(right, count, kind.piece)} {'is' if right == 1 else 'are'} right"
    numbers = {status: assembly.status.count(status) for status in STATUSES}
    if numbers["sure"] == count:
        return f"All {count} {kind.piece}s are sure"
    return ", ".join(f"{number} {name}" for name, number in numbers.items() if number)


def evidence(assembly: Answer, piece: int) -> str:
    """The matches that support a place given by a person: `fits a.png (log odds 2.1)`; empty where none is known."""
    names = assembly.puzzle.names
    beside = [(join.first + join.second - piece, join.log_odds) for join in assembly.joins if piece in join[:2]]
    found = ", ".join(f"{names[other]} (log odds {log_odds:.1f})" for other, log_odds in beside)
    return f"fits {found}" if found else ""


def _all(number: int, count: int, piece: str) -> str:
    return f"All {count} {piece}s" if number == count else f"{number} of {count} {piece}s"


def plural(number: int, word: str) -> str:
    """`1 piece`, `2 pieces`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def time_left(done: float, seconds: float) -> str:
    """How far it is and how long it may still take, in words; nothing where that is not known."""
    if done <= 0.02:
        return ""
    left = seconds / done * (1 - done)
    return f"{100 * done:.0f} %, about {_clock(left)} left, "


def _clock(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
