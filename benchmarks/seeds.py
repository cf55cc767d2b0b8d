"""Whether answers hang on the seed, on the unit of length or on the solver's own draws: the same broken objects again.

Every object is solved with several seeds in the files' own unit, with the first seed in other units, and with other
draws of points and poses than those that the solver makes by itself (which no user can ask for, but which tell how much
of an answer is luck). Coordinates are rounded to single precision in each unit, as most files hold them. Above the line
a place counts as sure.
Run: python benchmarks/seeds.py [--objects 4] [--pieces 8] [--data DIR] [--seeds 5] [--units 1 120 0.05]
     [--line 0.9]
"""

from __future__ import annotations

import os

# Libraries look at it when they are loaded.
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.core import Mesh, Puzzle
from diffassemble.fragments.breaking import fracture, scatter
from diffassemble.fragments.datasets import find_fractures
from diffassemble.fragments.mend import MendSolver
from diffassemble.fragments.shapes import make_solid
from diffassemble.io.fragments import fragment_pieces, in_file_coordinates
from diffassemble.kinds import make_solver

SOLIDS = ("bowl", "vase", "statue", "plate", "mug", "cookie", "teapot", "cup", "bottle", "spoon", "toy figure", "ring")


def broken_objects(count: int, pieces: int, data: Path | None) -> Iterator[tuple[str, list[Mesh]]]:
    """Names, and fragments as their files would have them: turned apart."""
    fractures = [] if data is None else find_fractures(data, pieces=(pieces, pieces))[:count]
    for number in range(len(fractures) if data is not None else count):
        generator = torch.Generator().manual_seed(number)
        if data is None:
            name = SOLIDS[number % len(SOLIDS)]
            meshes = fracture(make_solid(name, generator), pieces, generator)
        else:
            name, meshes = fractures[number].name, fractures[number].meshes()
        apart = scatter(meshes, generator).fragments
        yield name, [in_file_coordinates(apart, piece) for piece in range(len(apart))]


def in_unit(meshes: Sequence[Mesh], unit: float) -> Puzzle:
    """The puzzle that files with so many units to the length would make."""
    scaled = [Mesh((mesh.vertices.double() * unit).float().double(), mesh.faces) for mesh in meshes]
    return Puzzle(fragment_pieces(scaled), None, tuple(f"fragment_{number:02d}" for number in range(len(meshes))))


def compare(answers: Sequence[Answer], line: float) -> tuple[bool, int, float, float]:
    """Whether the same pieces are placed, how many confidences cross the line, and how far poses are apart.

    Degrees and share of the whole's size, the largest over the pieces that all are sure of, seen from the first of
    them.
    """
    placed = torch.stack([answer.placements.numbers >= 0 for answer in answers])
    sure = torch.stack([answer.confidence for answer in answers]) >= line
    crossing = int((sure.any(0) & ~sure.all(0)).sum())
    known = (sure.all(0) & placed.all(0)).nonzero()[:, 0]
    degrees, apart = 0.0, 0.0
    for answer in answers[1:] if len(known) > 1 else ():
        start = known[:1].expand(len(known))
        first, other = (one.poses[start].inverse() @ one.poses[known] for one in (answers[0], answer))
        cosine = ((first.rotation * other.rotation).sum((1, 2)) - 1) / 2
        degrees = max(degrees, float(torch.rad2deg(torch.arccos(cosine.clamp(-1, 1))).max()))
        apart = max(apart, float((first.translation - other.translation).norm(dim=-1).max()))
    return bool((placed == placed[0]).all()), crossing, degrees, apart


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=4)
    parser.add_argument("--pieces", type=int, default=8)
    parser.add_argument("--data", type=Path, help="a folder of Breaking Bad; else solids are made and broken")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--units", type=float, nargs="+", default=[1.0, 120.0, 0.05])
    parser.add_argument("--line", type=float, default=0.9)
    options = parser.parse_args()
    solver = make_solver("fragments", "mend")
    assert isinstance(solver, MendSolver)
    totals = {"seeds": [0, 0], "units": [0, 0], "draws": [0, 0]}
    objects = pieces = 0
    print("object      over    same placed  crossing  degrees    apart  seconds", flush=True)
    for name, meshes in broken_objects(options.objects, options.pieces, options.data):
        objects, pieces = objects + 1, pieces + len(meshes)
        first = assemble(in_unit(meshes, options.units[0]), solver, 0)
        others = range(1, options.seeds)
        runs = {
            "seeds": [(options.units[0], seed, solver) for seed in others],
            "units": [(unit, 0, solver) for unit in options.units[1:]],
            "draws": [(options.units[0], 0, replace(solver, draws=number)) for number in others],
        }
        for over, ways in runs.items():
            began = time.monotonic()
            answers = [first, *(assemble(in_unit(meshes, unit), one, seed) for unit, seed, one in ways)]
            same, crossing, degrees, apart = compare(answers, options.line)
            totals[over][0] += same
            totals[over][1] += crossing
            numbers = f"{same!s:>11}  {crossing:8d}  {degrees:7.3f}  {apart:7.5f}  {time.monotonic() - began:7.1f}"
            print(f"{name[:10]:10s}  {over}  {numbers}", flush=True)
    for over, (alike, crossings) in totals.items():
        share = 100 * alike / max(1, objects)
        print(
            f"{over}: same pieces placed for {share:.0f} % of {objects} objects; {crossings} of {pieces} pieces cross"
        )


if __name__ == "__main__":
    main()
