"""Pieces of a picture as a kind: equal rectangles, most often squares, on a grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import torch

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.assembly.kind import Drawing, Files, Kind, OpenOptions, Score, SolverOptions
from diffassemble.core import Board, InputError, Poses, Puzzle, Solver
from diffassemble.core.solver import ChanceSolver
from diffassemble.io import squares as files
from diffassemble.io.detect import Input
from diffassemble.kinds import load_fitting
from diffassemble.network.pretrained import bundled_models
from diffassemble.network.upright import bundled_upright, warn_once
from diffassemble.rendering import flat
from diffassemble.squares import gallagher, global_solvers
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import CompareEdges, find_matches, load_edge_model
from diffassemble.squares.network_solvers import DiffusionSolver, HybridSolver
from diffassemble.squares.placement import Uprighter, choose_board, turn_to_upright

if TYPE_CHECKING:
    from diffassemble.network.denoiser import Denoiser, PoseNetwork

EDGE_MODEL = "edge-model"
_BORDER_SOLVERS: dict[str, Callable[..., Solver]] = {
    "gallagher": gallagher.GallagherSolver,
    "yu": global_solvers.YuSolver,
    "huroyan": global_solvers.HuroyanSolver,
}
# These compare borders only, which don't determine which way is up; a classifier estimates it afterwards.
BORDER_SOLVERS = frozenset(_BORDER_SOLVERS)
# What tables compare by default.
COMPARED_SOLVERS = ("diffusion", "hybrid", *_BORDER_SOLVERS)


def bundled_uprighter() -> Uprighter | None:
    """The bundled classifier of which way is up; without it or its backbone, wholes stay as they were assembled."""
    model = bundled_upright()
    return None if model is None else partial(turn_to_upright, model)


def bundled_edge_model() -> CompareEdges | None:
    """The bundled edge compatibility; without it, border gradients alone are compared."""
    return load_edge_model(EDGE_MODEL) if EDGE_MODEL in bundled_models() else None


def _network(name: str) -> PoseNetwork:
    from diffassemble.network.encoders.image import ImageEncoder

    return load_fitting(name, lambda found: isinstance(found.encoder, ImageEncoder), SQUARES.default_model)


def _diffusion(options: SolverOptions) -> Solver:
    return DiffusionSolver(_network(options.model), options.steps, options.samples, upright=bundled_uprighter())


def _hybrid(options: SolverOptions) -> HybridSolver:
    return HybridSolver(_content(options.model), bundled_uprighter(), bundled_edge_model(), budget=options.budget)


def _content(name: str) -> Denoiser | None:
    """The network that reads the content of pieces; none if its pretrained backbone is not installed."""
    from diffassemble.network.denoiser import Denoiser
    from diffassemble.network.encoders.efficientnet import load_efficientnet

    network = _network(name)
    if not isinstance(network, Denoiser) or network.config.head != "cells":
        raise InputError(f"model '{name}' does not score cells; pass one with the head cells, or --solver diffusion")
    try:
        if network.config.backbone == "efficientnet":
            load_efficientnet()
    except InputError as error:
        warn_once(f"only borders are compared: {error}")
        return None
    return network


def as_listed(puzzle: Puzzle, generator: torch.Generator) -> Poses:
    """Cell by cell in the order given, unturned."""
    number = torch.arange(len(puzzle))
    return puzzle.board.poses(number, torch.zeros_like(number))


def at_random(puzzle: Puzzle, generator: torch.Generator) -> Poses:
    """On random cells, each with a random turn that fits it."""
    board = puzzle.board
    cells = torch.randperm(board.cells, generator=generator)[: len(puzzle)]
    turns = torch.tensor(board.piece_turns())
    return board.poses(cells, turns[torch.randint(len(turns), (len(puzzle),), generator=generator)])


def _prepare() -> None:
    """Solve pieces of noise by every solver, searched as on small and as on large boards."""
    noise = torch.rand(3, 48, 48, generator=torch.Generator().manual_seed(0))
    puzzle = cut_picture(noise, Board(6, 6), torch.Generator().manual_seed(0))
    quick = SolverOptions(SQUARES.default_model, samples=1, steps=1, budget=3.0)
    solver = _hybrid(quick)
    searched = replace(solver.config, sure=math.inf)
    large = replace(solver.config, energy=replace(solver.config.energy, listed_above=0))
    others = (make(quick) for name, make in SQUARES.solvers.items() if name != SQUARES.default_solver)
    for one in (*(replace(solver, config=config) for config in (searched, large)), *others):
        assemble(puzzle, one)


def read(found: Input, options: OpenOptions) -> Puzzle:
    """Pictures of equal size, a shuffled grid, or a photograph; the grid is estimated if it is not given."""
    board, path = options.board, found.path
    if board is None and options.extra:
        raise InputError(f"{path}: --extra needs the size of the picture; pass --grid, such as --grid 6x6")
    if found.form == "photograph of squares":
        from diffassemble.io.photo.squares import cut_squares

        pieces, shown = cut_squares(path, options.size)
        options.show(shown)
        options.say(f"taken for squares: {len(pieces)} pieces in 1 photo")
        names = tuple(f"piece_{index:03d}.png" for index in range(len(pieces)))
    elif found.form == "equal pictures":
        pieces, names = files.read_pieces(found.files), tuple(file.name for file in found.files)
    elif board is None:
        raise InputError(f"{path}: the grid of this picture is not known; pass --grid, such as --grid 6x6")
    else:
        pieces, names = files.split_picture(path, board)
    if board is None:
        solver = options.make(pieces.kind) if options.make else SQUARES.solvers["gallagher"](SolverOptions())
        board = choose_board(pieces, solver, options.seed, bundled_uprighter())
        options.say(f"grid not given: {board.rows}x{board.cols} fits the {len(pieces)} pieces best")
    if not options.extra:
        files.check_count(len(pieces), board, path)
    files.check_room(pieces, board, path)
    return Puzzle(pieces, board, names)


def _count_right(assembly: Answer, truth: Poses) -> Score:
    """Pieces in their cells at their turns, as they are and after the best quarter turn of the whole."""
    board = assembly.puzzle.board
    (cells, turns), true = board.snap(assembly.poses), torch.stack(board.snap(truth))
    turned = {by: torch.stack(board.turned(cells, turns, by)[1:]) for by in board.fitting_turns()}
    counts = {by: int((placed == true).all(0).sum()) for by, placed in turned.items()}
    best = max(counts, key=lambda by: counts[by])
    return Score(counts[0], counts[best], -90 * best % 360)


SQUARES = Kind(
    name="squares",
    piece="piece",
    whole="picture",
    matches=find_matches,
    solvers={
        "diffusion": _diffusion,
        "hybrid": _hybrid,
        **{
            name: lambda options, make=make: make(options.budget, bundled_uprighter())  # type: ignore[misc]
            for name, make in _BORDER_SOLVERS.items()
        },
        "identity": lambda options: ChanceSolver("identity", as_listed),
        "random": lambda options: ChanceSolver("random", at_random),
    },
    default_solver="hybrid",
    default_model="jigsaw",
    prepare=_prepare,
    files=Files(
        read=read,
        read_folder=files.read_folder,
        folder_contents=files.folder_contents,
        fields=lambda puzzle: files.board_fields(puzzle.board),
        matrices=lambda puzzle, poses: files.matrices(puzzle.board, poses),
        places=lambda puzzle, poses: files.placements(puzzle.board, poses),
        read_poses=files.read_poses,
    ),
    drawing=lambda: Drawing(*flat.DRAWN),
    count_right=_count_right,
)
