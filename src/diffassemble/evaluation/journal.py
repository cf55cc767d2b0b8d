"""Scores as they come, one line of JSON each, so that a run which is broken off can go on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from diffassemble.core import InputError
from diffassemble.evaluation.scoring import Score


class Journal:
    """Scores by solver, settings and puzzle. A line that was being written when the program died is dropped."""

    def __init__(self, path: Path, settings: Mapping[str, str | int | float]) -> None:
        self.path, self.settings = path, dict(settings)
        self.known: dict[str, Score] = {}
        if path.exists():
            self._read()

    def look_up(self, solver: str, puzzle: Mapping[str, str | int | float]) -> Score | None:
        """The score of this puzzle, if it was solved with the same settings before."""
        return self.known.get(self._key(solver, puzzle))

    def note(self, solver: str, puzzle: Mapping[str, str | int | float], score: Score) -> None:
        """Add a line, which is on the disk when this returns."""
        key = self._key(solver, puzzle)
        self.known[key] = score
        with self.path.open("a") as file:
            file.write(json.dumps({**json.loads(key), "score": asdict(score)}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _key(self, solver: str, puzzle: Mapping[str, str | int | float]) -> str:
        # An endless budget is no number of JSON's.
        told = {name: value if value != float("inf") else "endless" for name, value in self.settings.items()}
        return json.dumps({"solver": solver, "settings": told, "puzzle": dict(puzzle)}, sort_keys=True)

    def _read(self) -> None:
        text = self.path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                entry = json.loads(line)
                score = Score(**entry.pop("score"))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(f"{self.path}, line {number}: is no score; pass another --scores file") from error
            self.known[json.dumps(entry, sort_keys=True)] = score
        if whole != text:
            os.truncate(self.path, len(whole))
