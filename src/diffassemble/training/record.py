"""What a run leaves in its folder: config.json, log.csv, the best and the last weights, the checkpoint."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from dataclasses import asdict
from pathlib import Path

from diffassemble.files import write_file
from diffassemble.model.pretrained import Pretrained
from diffassemble.training.checkpoint import Checkpoint, write_checkpoint
from diffassemble.training.config import Config

BEST, LAST = "best", "last"


class Record:
    """Only one process keeps it. `best` is the highest score so far, −∞ before the first."""

    def __init__(self, folder: Path, config: Config, done: int, best: float) -> None:
        self.folder, self.log, self.best = folder, folder / "log.csv", best
        self._saved = time.monotonic()
        content = json.dumps(asdict(config), indent=2, default=os.fspath) + "\n"
        write_file(folder / "config.json", content.encode())
        self._forget_after(done)

    def scored(self, network: Pretrained, row: dict[str, str], scores: dict[str, float]) -> None:
        """Take note of a validation, and keep the network if it is the best so far."""
        if scores["score"] > self.best:
            self.best = scores["score"]
            network.save_pretrained(self.folder / BEST)
        row = row | {name: f"{value:.2f}" for name, value in scores.items()}
        new = not self.log.exists()
        with self.log.open("a", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(row))
            if new:
                writer.writeheader()
            writer.writerow(row)

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint."""
        write_checkpoint(checkpoint, self.folder)
        self._saved = time.monotonic()

    @property
    def age(self) -> float:
        """Minutes of work that a kill would cost now."""
        return (time.monotonic() - self._saved) / 60

    def _forget_after(self, done: int) -> None:
        """Rows of steps that are to be done again, or were cut short by a kill, would stand there twice."""
        rows = list(csv.reader(self.log.read_text().splitlines())) if self.log.exists() else []
        whole = [row for row in rows[1:] if len(row) == len(rows[0]) and row[0].isdecimal()]
        kept = [row for row in whole if int(row[0]) <= done]
        if not kept:
            self.log.unlink(missing_ok=True)
            return
        content = io.StringIO()
        csv.writer(content).writerows([rows[0], *kept])
        write_file(self.log, content.getvalue().encode())
