"""What `solve` says, for people or for other programs."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.progress import Progress

from diffassemble.puzzle import Assembly, Puzzle, Solver
from diffassemble.solvers import assemble


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
