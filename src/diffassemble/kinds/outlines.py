"""Flat pieces of any outline as a kind: anywhere in the plane, turned by any angle."""

from __future__ import annotations

import math
from importlib.resources import files as resources

import numpy as np
import torch
from jaxtyping import Bool

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.assembly.kind import Drawing, Files, Join, Kind, Score, SolverOptions
from diffassemble.assembly.scoring import right_outlines
from diffassemble.core import OutlinePieces, Poses, Puzzle, Solver
from diffassemble.core.poses import plane_rotations
from diffassemble.core.solver import ChanceSolver
from diffassemble.diffusion.spaces import SPACES
from diffassemble.io import outlines as files
from diffassemble.kinds import load_fitting
from diffassemble.network.upright import bundled_upright, upright_turn
from diffassemble.outlines.cut import cut_shape
from diffassemble.outlines.grow import GrowSolver, find_matches
from diffassemble.outlines.neighbours import next_joins
from diffassemble.rendering import flat


def at_random(puzzle: Puzzle, generator: torch.Generator) -> Poses:
    """Anywhere in a square as large as all pieces together, turned by any angle."""
    side = float(puzzle.outlines.areas.sum().sqrt())
    angles = 2 * math.pi * torch.rand(len(puzzle), generator=generator)
    return Poses(plane_rotations(angles), side * torch.rand(len(puzzle), 2, generator=generator))


def _grow(options: SolverOptions) -> Solver:
    model = bundled_upright()
    if model is None:
        return GrowSolver(options.budget, options.several)

    def upright(pieces: OutlinePieces, poses: Poses, chosen: Bool[np.ndarray, "n"]) -> tuple[int, float]:
        return upright_turn(model, flat.picture_of(pieces, poses, chosen))

    return GrowSolver(options.budget, options.several, upright)


def _diffusion(options: SolverOptions) -> Solver:
    from diffassemble.outlines.diffusion import OutlineDiffusionSolver

    network = load_fitting(options.model, lambda found: found.space is SPACES["plane"], OUTLINES.default_model)
    return OutlineDiffusionSolver(network, find_matches, options.steps, options.samples)


def _prepare() -> None:
    """Solve and draw a few pieces of every shape."""
    for shape in ("tabs", "shards", "strips"):
        puzzle = cut_shape(str(resources("skimage.data") / "coffee.png"), shape, 12)
        flat.draw_assembly(assemble(puzzle, _grow(SolverOptions())))


def _draw_next_joins(assembly: Answer) -> list[Join]:
    found = [(one.piece, one.neighbour, one.words) for one in next_joins(assembly)]
    return [Join(first, second, flat.draw_pair(assembly, first, second), words) for first, second, words in found]


def _count_right(assembly: Answer, truth: Poses) -> Score:
    right = int(right_outlines(assembly.puzzle.outlines, assembly.poses, truth).sum())
    return Score(right, right)


OUTLINES = Kind(
    name="outlines",
    piece="piece",
    whole="picture",
    matches=find_matches,
    solvers={
        "grow": _grow,
        "diffusion": _diffusion,
        "identity": lambda options: ChanceSolver("identity", lambda puzzle, generator: Poses.identity(len(puzzle), 2)),
        "random": lambda options: ChanceSolver("random", at_random),
    },
    default_solver="grow",
    default_model="outlines",
    several=frozenset({"grow"}),
    prepare=_prepare,
    files=Files(
        read=files.read,
        read_folder=files.read_folder,
        folder_contents=files.folder_contents,
        matrices=lambda puzzle, poses: files.file_matrices(puzzle.outlines, poses),
        places=lambda puzzle, poses: files.places(puzzle.outlines, poses),
        read_poses=files.read_poses,
    ),
    drawing=lambda: Drawing(*flat.DRAWN, plan=flat.draw_plan, next_joins=_draw_next_joins),
    count_right=_count_right,
    next_joins=next_joins,
)
