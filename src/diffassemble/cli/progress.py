"""What verbs that solve say, for people or for other programs: how far they are, and what came of it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.core import Puzzle, Solver, Step
from diffassemble.core.thresholds import LIKELY
from diffassemble.io.atomic import check_file, write_file
from diffassemble.io.pictures import is_our_picture, png_bytes
from diffassemble.kinds import kind_of
from diffassemble.rendering.report import account


@dataclass(frozen=True)
class Output:
    """Words go to people, lines of JSON to programs; where a program reads, people are told on the error stream."""

    lines: bool = False
    document: bool = False
    began: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """Tell people, at once."""
        print(text, file=sys.stderr if self.lines or self.document else sys.stdout, flush=True)

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

    def assembled(self, puzzle: Puzzle, solver: Solver, seed: int) -> Answer:
        """Solve; people see a bar, programs a line for every step."""
        with bar("solving") as progress:

            def on_step(step: Step) -> None:
                progress(step.done)
                self.event("step", done=round(step.done, 4))

            return assemble(puzzle, solver, seed, on_step)


@contextmanager
def bar(title: str) -> Iterator[Callable[[float], None]]:
    """A progress bar on the error stream, if that is a terminal, as long as the block runs; goes from 0 to 1."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=1.0)
        yield lambda done: progress.update(task, completed=done)


def show_found(folder: Path | None, overwrite: bool, say: Callable[[str], None], picture: Image.Image) -> None:
    """Write, beside the folder that is asked for, what was found in photographs; whatever comes of it."""
    if folder is not None:
        target = folder.parent / f"{folder.name}-found.png"
        check_file(target, is_our_picture, overwrite)
        write_file(target, png_bytes(picture))
        say(f"{target} shows what was found")


def show(table: Table) -> None:
    """Print a table; output that goes into a file or a pipe has no width of its own."""
    screen = Console()
    (screen if screen.is_terminal else Console(width=150)).print(table)


def summary(assembly: Answer) -> str:
    """What was done, in a line; which fragments are sure and which guessed; and the score if the truth is known."""
    puzzle = assembly.puzzle
    sure = int((assembly.placements.trust >= LIKELY).sum())
    placed = int((assembly.placements.numbers >= 0).sum())
    lines = [f"placed {placed} pieces in {assembly.seconds:.1f} s; {sure} with a confidence of one half or more"]
    lines += [f"{heading}: {names}" for heading, names in account(assembly)]
    known = kind_of(puzzle).score(assembly)
    return "\n".join(lines if known is None else [*lines, f"score: {known}"])


def joined(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
