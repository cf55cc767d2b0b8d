"""What the verbs that solve have in common: reading with an unknown grid, a progress bar, a summary."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from diffassemble.core import Assembly, Board, InputError, Puzzle, Solver
from diffassemble.core.solver import assemble
from diffassemble.files.archives import is_zip, unpacked
from diffassemble.files.puzzles import knows_board, read_puzzle
from diffassemble.kinds import kind_of
from diffassemble.rendering.report import account
from diffassemble.squares.files import read_pieces
from diffassemble.squares.grid import choose_board
from diffassemble.squares.kind import bundled_uprighter

# ----------------------------------------------------------------------------------------------------------------------
# What `solve` says, for people or for other programs.


@dataclass(frozen=True)
class Talk:
    """Words go to people, lines of JSON to programs; where a program reads, people are told on the error stream."""

    lines: bool = False
    document: bool = False
    began: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """Tell people."""
        print(text, file=sys.stderr if self.lines or self.document else sys.stdout)

    def event(self, name: str, **fields: Any) -> None:
        """Tell programs that asked for it, one line at a time."""
        if self.lines:
            seconds = round(time.monotonic() - self.began, 3)
            print(json.dumps({"event": name, "seconds": seconds, **fields}), flush=True)

    def answer(self, document: bytes) -> None:
        """Hand a document to the program that reads."""
        if self.lines:
            self.event("answer", assembly=json.loads(document))
        else:
            sys.stdout.write(document.decode())

    def assembled(self, puzzle: Puzzle, solver: Solver, seed: int) -> Assembly:
        """Solve; people see a bar on the error stream, if that is a terminal, programs a line for every step."""
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            job = progress.add_task("solving", total=1.0)

            def on_step(step: Any) -> None:
                progress.update(job, completed=step.done)
                self.event("step", done=round(step.done, 4))

            return assemble(puzzle, solver, seed, on_step)


# ----------------------------------------------------------------------------------------------------------------------
# What the verbs that solve have in common: reading with an unknown grid, a progress bar, a summary.


def load_puzzle(
    path: Path,
    board: Board | None,
    make: Callable[[str], Solver],
    seed: int,
    say: Callable[[str], None] = print,
    extra: bool = False,
) -> tuple[Puzzle, Solver]:
    """Read what the user gave, and make a solver for it.

    A folder of pictures without a grid gets the one its borders ask for. With `extra` there may be more pieces than
    cells.
    """
    if is_zip(path):
        with unpacked(path) as folder:
            return load_puzzle(folder, board, make, seed, say, extra)
    if extra and path.is_dir() and not knows_board(path):
        if board is None:
            raise InputError(f"{path}: pass --grid with --extra, such as --grid 6x6, to say how large the picture is")
        pieces, names = read_pieces(path)
        return Puzzle(pieces, board, names), make(pieces.kind)
    if board is not None or not path.is_dir() or knows_board(path):
        puzzle = read_puzzle(path, board)
        return puzzle, make(puzzle.kind)
    pieces, names = read_pieces(path)
    solver = make(pieces.kind)
    board = choose_board(pieces, solver, seed, bundled_uprighter())
    say(f"grid not given: {board.rows}x{board.cols} fits the {len(pieces)} pieces best")
    return Puzzle(pieces, board, names), solver


def assembled(puzzle: Puzzle, solver: Solver, seed: int) -> Assembly:
    """Solve under a progress bar on the error stream, if that is a terminal."""
    return Talk().assembled(puzzle, solver, seed)


def summary(assembly: Assembly) -> str:
    """What was done, in a line; which fragments are sure and which guessed; and the score if the truth is known."""
    puzzle = assembly.puzzle
    sure = int((assembly.confidence >= 0.5).sum())
    placed = len(puzzle) if assembly.objects is None else sum(number >= 0 for number in assembly.objects)
    lines = [f"placed {placed} pieces in {assembly.seconds:.1f} s; {sure} with a confidence of one half or more"]
    lines += [f"{heading}: {names}" for heading, names in account(assembly)]
    known = kind_of(puzzle).score(assembly)
    return "\n".join(lines if known is None else [*lines, f"score: {known}"])
