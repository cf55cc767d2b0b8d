"""Flat pieces of any outline as a kind: they lie anywhere in the plane, turned by any angle."""

from __future__ import annotations

import math
from importlib.resources import files as resources
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from jaxtyping import Bool
from PIL import Image

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.assembly.kind import Drawing, Join, Kind, NextJoin, OpenOptions, Score, SolverOptions
from diffassemble.core import InputError, Matches, OutlinePieces, Poses, Puzzle, Solver
from diffassemble.core.poses import plane_rotations
from diffassemble.core.solver import ChanceSolver
from diffassemble.io import outlines as files
from diffassemble.io.detect import detect

_MODEL = "outlines"
_OPENING = """
<ul>
<li><code>assembled.png</code> is the whole at the size of the pieces' pictures; any program opens it.</li>
<li><code>plan.png</code> has every piece's number at its place, and how far to turn it: print it, and lay the pieces by
it.</li>
<li><code>assembly.json</code> tells of every piece where the centre of its area lies in it (x, y, in pixels), by how
many degrees the piece was turned clockwise, and a 4×4 matrix that moves pixels of the piece's file there.</li>
</ul>"""


def at_random(puzzle: Puzzle, generator: torch.Generator) -> Poses:
    """Anywhere in a square as large as all pieces together, turned by any angle."""
    side = float(puzzle.outlines.areas.sum().sqrt())
    angles = 2 * math.pi * torch.rand(len(puzzle), generator=generator)
    return Poses(plane_rotations(angles), side * torch.rand(len(puzzle), 2, generator=generator))


def _set_aside(puzzle: Puzzle) -> tuple[Puzzle, tuple[str, ...]]:
    raise InputError("--extra is for square pieces; solvers of outlines leave out what fits nowhere by themselves")


def _matches(puzzle: Puzzle) -> Matches:
    from diffassemble.outlines.matches import find_matches

    return find_matches(puzzle)


def _grow(options: SolverOptions) -> Solver:
    from diffassemble.network.upright import bundled_upright, upright_turn
    from diffassemble.outlines.grow import GrowSolver

    model = bundled_upright()
    if model is None:
        return GrowSolver(options.budget, options.several)

    def look(pieces: OutlinePieces, poses: Poses, chosen: Bool[np.ndarray, "n"]) -> tuple[int, float]:
        from diffassemble.rendering.flat import picture_of

        return upright_turn(model, picture_of(pieces, poses, chosen))

    return GrowSolver(options.budget, options.several, look)


def _diffusion(options: SolverOptions) -> Solver:
    from diffassemble.diffusion.spaces import SPACES
    from diffassemble.network.loading import load_network
    from diffassemble.outlines.diffusion import OutlineDiffusionSolver

    network = load_network(options.model)
    if network.space is not SPACES["plane"]:
        raise InputError(f"model '{options.model}' is not for pieces of any outline; use {_MODEL}")
    return OutlineDiffusionSolver(network, _matches, options.steps, options.samples)


def _prepare() -> None:
    """Solve and draw a few pieces of every sort, and read a photograph of loose pieces."""
    from diffassemble.io.pictures import png_bytes
    from diffassemble.outlines.cut import cut_shape

    for shape in ("tabs", "shards", "strips"):
        puzzle = cut_shape(str(resources("skimage.data") / "coffee.png"), shape, 12)
        _drawing().assembly(assemble(puzzle, _grow(SolverOptions())))
    with TemporaryDirectory() as folder:
        photo = Path(folder) / "photo.png"
        ground = Image.new("RGB", (640, 480), "white")
        for left, top, right, bottom in ((60, 60, 260, 220), (360, 60, 560, 220), (60, 280, 260, 440)):
            ground.paste((60, left // 3, bottom // 2), (left, top, right, bottom))
        photo.write_bytes(png_bytes(ground))
        options = OpenOptions(kind=OUTLINES.name)
        files.read(detect(photo, options), options)


def _drawing() -> Drawing:
    from diffassemble.rendering import flat

    drawn = flat.draw_assembly, flat.draw_before_after, flat.draw_confidence, flat.animate
    return Drawing(flat.draw_pieces, *drawn, plan=flat.draw_plan, next_joins=_draw_next_joins)


def _draw_next_joins(assembly: Answer) -> list[Join]:
    from diffassemble.rendering.flat import draw_pair

    return [
        Join(one.piece, one.neighbour, draw_pair(assembly, one.piece, one.neighbour), one.words)
        for one in _next_joins(assembly)
    ]


def _next_joins(assembly: Answer) -> list[NextJoin]:
    from diffassemble.outlines.neighbours import next_joins

    return next_joins(assembly)


def _count_right(assembly: Answer, truth: Poses) -> Score:
    from diffassemble.assembly.scoring import right_outlines

    right = int(right_outlines(assembly.puzzle.outlines, assembly.poses, truth).sum())
    return Score(right, right)


OUTLINES = Kind(
    name="outlines",
    piece="piece",
    whole="picture",
    free="",
    matches=_matches,
    solvers={
        "grow": _grow,
        "diffusion": _diffusion,
        "identity": lambda options: ChanceSolver("identity", lambda puzzle, generator: Poses.identity(len(puzzle), 2)),
        "random": lambda options: ChanceSolver("random", at_random),
    },
    default_solver="grow",
    default_model=_MODEL,
    several=frozenset({"grow"}),
    prepare=_prepare,
    document=files.DOCUMENT,
    read=files.read,
    set_aside=_set_aside,
    read_folder=files.read_folder,
    folder_contents=files.folder_contents,
    fields=lambda puzzle: {},
    matrices=lambda puzzle, poses: files.file_matrices(puzzle.outlines, poses),
    places=lambda puzzle, poses: files.places(puzzle.outlines, poses),
    fitted=lambda puzzle, document, source: puzzle,
    read_poses=files.read_poses,
    check_locks=lambda puzzle, poses, held, source: None,
    further_files=lambda assembly: iter(()),
    drawing=_drawing,
    facts=lambda puzzle: [],
    opening=_OPENING,
    count_right=_count_right,
    next_joins=_next_joins,
)
