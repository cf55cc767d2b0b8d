"""Output of verbs that solve, for people or for other programs: progress, and the result."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image
from rich.console import Console
from rich.table import Table

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.core import Puzzle, Solver, Step
from diffassemble.core.thresholds import LIKELY, UPRIGHT
from diffassemble.io.assemblies import ASSEMBLY_FILES, assembly_bytes, write_assembly
from diffassemble.io.atomic import check_file, write_file
from diffassemble.io.pictures import is_our_picture, png_bytes
from diffassemble.kinds import kind_of, progress_bar
from diffassemble.rendering.report import Rows, account


@dataclass(frozen=True)
class Output:
    """Text for people; `lines` of JSON or one `document` for programs, and then the text goes to the error stream."""

    lines: bool = False
    document: bool = False
    began: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """Print a line for people, at once."""
        print(text, file=sys.stderr if self.lines or self.document else sys.stdout, flush=True)

    def event(self, name: str, **fields: Any) -> None:
        """Print a line of JSON for programs that asked for it."""
        if self.lines:
            seconds = round(time.monotonic() - self.began, 3)
            print(json.dumps({"event": name, "seconds": seconds, **fields}), flush=True)

    def answer(self, document: bytes) -> None:
        """Print a document for programs."""
        if self.lines:
            self.event("answer", assembly=json.loads(document))
        else:
            sys.stdout.write(document.decode())

    def assembled(self, puzzle: Puzzle, solver: Solver, seed: int) -> Answer:
        """Solve; people see a bar, programs a line for every step."""
        with progress_bar("solving") as progress:

            def on_step(step: Step) -> None:
                progress(step.done)
                self.event("step", done=round(step.done, 4))

            return assemble(puzzle, solver, seed, on_step)

    def deliver(self, assembly: Answer, folder: Path | None, overwrite: bool, pictures: bool, settings: Rows) -> None:
        """Print what was found, and write it to a folder, drawings last; without a folder print the document."""
        self.say(summary(assembly))
        if assembly.puzzle.pieces.flat and assembly.puzzle.truth is None and not (assembly.upright or 0) >= UPRIGHT:
            self.say("if it is the wrong way up: --turn 90, 180 or 270 turns the whole clockwise")
        if assembly.extra:
            count = f"{len(assembly.extra)} piece{'' if len(assembly.extra) == 1 else 's'}"
            self.say(f"left out, since they do not belong: {count}: {', '.join(assembly.extra)}")
        if folder is None:
            self.answer(assembly_bytes(assembly))
            return
        written: list[str] = []
        with progress_bar("drawing") as progress:

            def wrote(name: str) -> None:
                if not written:
                    self.say(f"wrote {name} to {folder}")
                written.append(name)
                progress(len(written) / len(ASSEMBLY_FILES))
                self.event("wrote", file=name)

            write_assembly(assembly, folder, overwrite, pictures=pictures, settings=settings, wrote=wrote)
        if written[1:]:
            *others, last = written[1:]
            self.say(f"wrote {' and '.join([', '.join(others)] * bool(others) + [last])} beside it")
        self.event("done", out=str(folder), pieces=len(assembly.puzzle), extra=list(assembly.extra))


def show_found(folder: Path | None, overwrite: bool, say: Callable[[str], None], picture: Image.Image) -> None:
    """Write what was found in photographs beside the folder that is asked for, even if it is then refused."""
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
    """How many pieces were placed in how many seconds; the status of each; the score if the truth is known."""
    placed, likely = (int(chosen.sum()) for chosen in (assembly.placements.numbers >= 0, assembly.confidence >= LIKELY))
    pieces = f"{placed} {kind_of(assembly.puzzle).piece}{'' if placed == 1 else 's'}"
    lines = [f"placed {pieces} in {assembly.seconds:.1f} s; {likely} with a confidence of at least {LIKELY:g}"]
    lines += [f"{heading}: {names}" for heading, names in account(assembly)]
    score = kind_of(assembly.puzzle).score(assembly)
    return "\n".join(lines if score is None else [*lines, f"score: {score}"])
