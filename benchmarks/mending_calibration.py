"""Whether what `mend` tells as sure is right, by how objects were broken and what happened to the fragments since.

Breaking Bad (--data), and solids made by code and broken by this program (rough, smooth), sawn, and in cells around
nuclei; rough ones also with noise, worn, with pieces missing, as clouds, and as meshes of few faces. None of these
solids was learnt from. The largest piece of an object is not counted, what is laid aside counts at its best guess.
Broken off, the same command goes on.
Run: python benchmarks/mending_calibration.py [--data DIR] [--groups NAME …] [--pieces 500] [--skipped 0]
     [--out FOLDER]
"""

from __future__ import annotations

import os

# Libraries look at it when they are loaded.
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from manifold3d import Manifold

from diffassemble.assembly.scoring import anchored
from diffassemble.core import InputError, Mesh, Step
from diffassemble.core.seeds import random_stream, seeded
from diffassemble.evaluation.fragments import Broken, ObjectCell, score_object
from diffassemble.evaluation.sweep import Case
from diffassemble.fragments.breaking import bodies, fracture, mesh_of, solid_of
from diffassemble.fragments.datasets import find_fractures
from diffassemble.fragments.shapes import SOLIDS, make_solid
from diffassemble.kinds import make_solver

FEW_FACES = 2000


@dataclass(frozen=True)
class Made:
    """A solid of a class, broken in one of several ways; faces: of each fragment at most so many."""

    category: str
    number: int
    pieces: int = 8
    roughness: float = 1.0
    cells: bool = False
    faces: int = 0

    @property
    def name(self) -> str:
        return f"{self.category} {self.number}"

    def meshes(self) -> Sequence[Mesh]:
        """The fragments where they belong."""
        for attempt in range(20):
            generator = seeded(31_415, self.number, attempt)
            try:
                whole = make_solid(self.category, generator)
                if self.cells:
                    parts = in_cells(whole, self.pieces, generator)
                else:
                    parts = fracture(whole, self.pieces, generator, 0.0, self.roughness)
                return [simplified(part, self.faces) for part in parts] if self.faces else parts
            except InputError:
                continue
        raise InputError(f"{self.name} can't be broken into {self.pieces} pieces")


def in_cells(whole: Mesh, pieces: int, generator: torch.Generator) -> list[Mesh]:
    """Parts of a solid that are nearest to one of some points of it each, small ones left with their neighbours."""
    corners = whole.vertices[torch.randperm(len(whole.vertices), generator=generator)[:pieces]].double().numpy()
    solid, parts = solid_of(whole), []
    for own in corners:
        cell = solid
        for other in corners:
            if other is not own:
                across = own - other
                length = float(np.linalg.norm(across))
                if length > 0:
                    normal = across / length
                    cell = cell.trim_by_plane(tuple(normal), float(normal @ (own + other) / 2))
        parts += bodies(cell) if not cell.is_empty() else []
    kept = [part for part in parts if part.volume() > 1e-4 * solid.volume()]
    if not 3 <= len(kept) <= 3 * pieces:
        raise InputError("falls into too few or too many cells")
    return [mesh_of(part) for part in kept]


def simplified(mesh: Mesh, faces: int) -> Mesh:
    """The mesh with at most so many faces."""
    solid, size = solid_of(mesh), float(np.ptp(mesh.vertices.numpy(), axis=0).max())
    step, simple = 1e-4 * size, solid
    while simple.num_tri() > faces and step < size:
        tried: Manifold = solid.simplify(step)
        simple, step = (simple if tried.is_empty() else tried), 1.3 * step
    return mesh_of(simple)


def groups(data: Path | None, pieces: int, skipped: int) -> dict[str, ObjectCell]:
    """The puzzles of every group, enough of them for so many pieces; solids are numbered from those skipped on."""
    classes = sorted(SOLIDS)

    def solids(**how: Any) -> list[Broken]:
        return [Made(classes[number % len(classes)], number, **how) for number in range(skipped, skipped + 2 * pieces)]

    found: list[tuple[str, list[Broken], dict[str, Any]]] = []
    if data is not None:
        val: list[Broken] = [*find_fractures(data, "val", "everyday", (2, 20))] * 20
        found.append(("Breaking Bad", val, {}))
        found.append(("Breaking Bad, 0.1 % noise", val, {"noise": 0.001}))
        found.append(("Breaking Bad, 20 % missing", val, {"missing": 0.2}))
    rough = solids()
    found += [
        ("rough", rough, {}),
        ("smooth", solids(roughness=0.3), {}),
        ("sawn", solids(roughness=0.0), {}),
        ("cells", solids(cells=True), {}),
        *((f"{count} pieces", solids(pieces=count), {}) for count in (20, 40, 100)),
        ("0.1 % noise", rough, {"noise": 0.001}),
        ("0.3 % noise", rough, {"noise": 0.003}),
        ("worn by 0.5 %", rough, {"wear": 0.005}),
        ("20 % missing", rough, {"missing": 0.2}),
        ("clouds, 30,000 points each", rough, {"points_each": 30_000}),
        ("clouds, 5,000 points each", rough, {"points_each": 5000}),
        (f"at most {FEW_FACES} faces each", solids(faces=FEW_FACES), {}),
    ]
    return {name: ObjectCell(name, objects, anchors=("largest",), **damage) for name, objects, damage in found}


def measure(cell: ObjectCell, pieces: int, file: Path) -> list[dict[str, Any]]:
    """Confidence and truth of at least so many pieces; noted object by object."""
    done = [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []
    solver = make_solver("fragments", "mend")
    with file.open("a") as notes:
        while sum(len(one["right"]) for one in done) < pieces:
            number = len(done)
            case, began = cell.case(number, 0), time.process_time()
            *_, step = solver.steps(case.given, random_stream(0, number, 3))
            spent = time.process_time() - began
            one: dict[str, Any] = {"name": cell.fractures[number].name, "seconds": round(spent, 2)}
            one |= told_and_true(case, step)
            print(json.dumps(one), file=notes, flush=True)
            done.append(one)
    return done


def told_and_true(case: Case, step: Step) -> dict[str, list[float]]:
    """How sure each piece was told, and whether it is right; the largest is not counted.

    Where the largest was left out, what was put together is seen from the largest of its own pieces, which is not
    counted either: confidence is told of places beside each other.
    """
    placements = step.placements
    sure, share, count = placements.confidence, case.share, len(case.share)
    largest = int(share.argmax())
    anchor, counted = largest, torch.arange(count) != largest
    right = torch.tensor(score_object(case, placements, "largest").columns["right"])
    placed = sure > 0
    if bool(placed.any()) and not bool(placed[largest]):
        anchor, truth = int((share * placed).argmax()), case.puzzle.truth
        assert truth is not None
        seen = score_object(case, replace(placements, poses=anchored(step.poses, truth, anchor), guess=None), "none")
        right = torch.where(placed, torch.tensor(seen.columns["right"]), right)
        counted = counted & (torch.arange(count) != anchor)
    return {"sure": sure[counted].tolist(), "right": right[counted].tolist()}


def draw(rows: dict[str, tuple[np.ndarray, np.ndarray]], file: Path) -> None:
    """For every group: right by how sure, in steps; the size of a dot tells how many pieces."""
    across = 4
    down = -(-len(rows) // across)
    figure, axes = plt.subplots(down, across, figsize=(3 * across, 3 * down), sharex=True, sharey=True, squeeze=False)
    edges = np.array([0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0001])
    for place, axis in enumerate(axes.flat):
        axis.set_visible(place < len(rows))
    for axis, (name, (sure, right)) in zip(axes.flat, rows.items(), strict=False):
        which = np.digitize(sure, edges) - 1
        some = [k for k in range(len(edges) - 1) if (which == k).any()]
        means = [(sure[which == k].mean(), right[which == k].mean(), (which == k).sum()) for k in some]
        axis.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        axis.scatter(*np.array(means)[:, :2].T, s=[8 + 0.6 * count for *_, count in means], color="#1f6f8b", zorder=2)
        axis.set_title(name, fontsize=9)
        axis.set_xlim(-0.05, 1.05)
        axis.set_ylim(-0.05, 1.05)
    figure.supxlabel("told probability", fontsize=10)
    figure.supylabel("share that is right", fontsize=10)
    figure.tight_layout()
    figure.savefig(file, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder of Breaking Bad")
    parser.add_argument("--groups", nargs="+", default=None)
    parser.add_argument("--pieces", type=int, default=500)
    parser.add_argument("--skipped", type=int, default=0, help="solids to leave out, such as those looked at before")
    parser.add_argument("--out", type=Path, default=Path("calibration"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = {}
    print(f"{'group':30s} objects  pieces  right  above 0.9  of these right  0.5 to 0.9  of these right  seconds")
    for name, cell in groups(options.data, options.pieces, options.skipped).items():
        if options.groups is not None and name not in options.groups:
            continue
        done = measure(cell, options.pieces, options.out / f"{name.replace(' ', '-').replace('%', 'percent')}.jsonl")
        sure = np.concatenate([one["sure"] for one in done])
        right = np.concatenate([one["right"] for one in done])
        rows[name] = sure, right
        high, middle = sure > 0.9, (sure > 0.5) & (sure <= 0.9)
        numbers = f"{len(done):7d} {len(sure):7d} {100 * right.mean():6.1f} {high.sum():10d}"
        # Of the processor, by one thread.
        seconds = np.median([one["seconds"] for one in done])
        likely = f"{middle.sum():11d} {int(right[middle].sum()):15d} {seconds:8.1f}"
        print(f"{name:30s} {numbers} {int(right[high].sum()):15d} {likely}", flush=True)
        draw(rows, options.out / "calibration.png")


if __name__ == "__main__":
    main()
