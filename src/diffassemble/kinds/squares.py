"""Pieces of a picture as a kind: equal rectangles, most often squares, on a grid."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import torch

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.assembly.kind import Drawing, Kind, OpenOptions, Score, SolverOptions
from diffassemble.core import Board, ImagePieces, InputError, Matches, Poses, Puzzle, Solver
from diffassemble.core.solver import ChanceSolver
from diffassemble.io import squares as files
from diffassemble.io.detect import Input

if TYPE_CHECKING:
    from diffassemble.network.denoiser import Denoiser, PoseNetwork
    from diffassemble.squares.edge_model import CompareEdges
    from diffassemble.squares.hybrid import HybridSolver
    from diffassemble.squares.placement import Uprighter

EDGE_MODEL = "edge-model"
# These only compare borders, which can't tell which way is up; where they know it, the classifier told them.
BORDER_SOLVERS = frozenset({"gallagher", "yu", "huroyan"})
# What tables compare, if nothing else is asked for.
COMPARED_SOLVERS = ("diffusion", "hybrid", "gallagher", "yu", "huroyan")

_OPENING = """
<ul>
<li><code>assembled.png</code> is the picture itself, pixel by pixel; any program opens it.</li>
<li><code>assembly.json</code> tells row, column, turn and a 4×4 matrix of every piece, as CloudCompare, MeshLab and
Blender take them: the longer side of the board spans −1 to 1, y runs down.</li>
</ul>"""


def bundled_uprighter() -> Uprighter | None:
    """The classifier that comes with the package; without it or its backbone, wholes stay as they were assembled."""
    from diffassemble.network.upright import bundled_upright
    from diffassemble.squares.placement import turn_to_upright

    model = bundled_upright()
    return None if model is None else partial(turn_to_upright, model)


def bundled_edge_model() -> CompareEdges | None:
    """The learned edge compatibility that comes with the package; without it, border gradients alone tell what fits."""
    from diffassemble.network.pretrained import bundled_models
    from diffassemble.squares.edge_model import load_edge_model

    return load_edge_model(EDGE_MODEL) if EDGE_MODEL in bundled_models() else None


def _flat(network: PoseNetwork, model: str) -> PoseNetwork:
    """The same network, if it is one for pieces of a picture."""
    from diffassemble.network.encoders.image import ImageEncoder

    if not isinstance(network.encoder, ImageEncoder):
        raise InputError(f"model '{model}' is for other pieces; these are squares of a picture, which jigsaw is for")
    return network


def _diffusion(options: SolverOptions) -> Solver:
    from diffassemble.network.loading import load_network
    from diffassemble.squares.diffusion import DiffusionSolver

    network = _flat(load_network(options.model), options.model)
    return DiffusionSolver(network, options.steps, options.samples, upright=bundled_uprighter())


def _hybrid(options: SolverOptions) -> HybridSolver:
    from diffassemble.squares.hybrid import HybridSolver

    content = _content(options.model)
    return HybridSolver(content, bundled_uprighter(), bundled_edge_model(), budget=options.budget)


def _content(name: str) -> Denoiser | None:
    """The network that tells where pieces belong by what they show; nobody, if its backbone is not there."""
    from diffassemble.network.denoiser import Denoiser
    from diffassemble.network.encoders.efficientnet import load_efficientnet
    from diffassemble.network.upright import tell_once

    network = Denoiser.from_pretrained(name)
    _flat(network, name)
    if network.config.head != "cells":
        raise InputError(f"model '{name}' does not score cells; pass one with the head cells, or --solver diffusion")
    try:
        if network.config.backbone == "efficientnet":
            load_efficientnet()
    except InputError as error:
        tell_once(f"borders alone are looked at: {error}")
        return None
    return network


def _gallagher(options: SolverOptions) -> Solver:
    from diffassemble.squares.gallagher import GallagherSolver

    return GallagherSolver(options.budget, bundled_uprighter())


def _yu(options: SolverOptions) -> Solver:
    from diffassemble.squares.yu import YuSolver

    return YuSolver(options.budget, bundled_uprighter())


def _huroyan(options: SolverOptions) -> Solver:
    from diffassemble.squares.huroyan import HuroyanSolver

    return HuroyanSolver(options.budget, bundled_uprighter())


def as_listed(puzzle: Puzzle, generator: torch.Generator) -> Poses:
    """Cell by cell in the order given, unturned."""
    number = torch.arange(len(puzzle))
    return puzzle.board.poses(number, torch.zeros_like(number))


def at_random(puzzle: Puzzle, generator: torch.Generator) -> Poses:
    """On any cells, turned in any way that fits them."""
    board = puzzle.board
    cells = torch.randperm(board.cells, generator=generator)[: len(puzzle)]
    turns = torch.tensor(board.piece_turns())
    return board.poses(cells, turns[torch.randint(len(turns), (len(puzzle),), generator=generator)])


def _prepare() -> None:
    """Solve pieces of noise by every solver, searched as on small and as on large boards."""
    from diffassemble.squares.cut import cut_picture

    noise = torch.rand(3, 48, 48, generator=torch.Generator().manual_seed(0))
    puzzle = cut_picture(noise, Board(6, 6), torch.Generator().manual_seed(0))
    solver = _hybrid(SolverOptions(SQUARES.default_model, samples=1, steps=1, budget=3.0))
    searched = replace(solver.config, sure=math.inf)
    large = replace(solver.config, energy=replace(solver.config.energy, listed_above=0))
    quick = SolverOptions(SQUARES.default_model, samples=1, steps=1, budget=3.0)
    others = (make(quick) for name, make in SQUARES.solvers.items() if name != SQUARES.default_solver)
    chosen = [replace(solver, config=config) for config in (searched, large)]
    for one in (*chosen, *others):
        assemble(puzzle, one)


def read(found: Input, options: OpenOptions) -> Puzzle:
    """Pictures of equal size, whose grid is found out if it is not given, a shuffled grid, or a photograph.

    With `extra` there may be more pieces than cells; then the grid must be given.
    """
    board, path = options.board, found.path
    if board is None and options.extra:
        raise InputError(f"{path}: pass --grid with --extra, such as --grid 6x6, to say how large the picture is")
    if found.form == "photograph of squares":
        pieces, names = _read_photo(found, options)
    elif found.form == "equal pictures":
        pieces, names = files.read_pieces(found.path)
    elif board is None:
        raise InputError(f"{path}: does not tell its grid; pass --grid, such as --grid 6x6")
    else:
        pieces, names = files.split_picture(path, board)
    board = board or find_board(pieces, options)
    if not options.extra:
        files.check_count(len(pieces), board, path)
    files.check_room(pieces, board, path)
    return Puzzle(pieces, board, names)


def _read_photo(found: Input, options: OpenOptions) -> tuple[ImagePieces, tuple[str, ...]]:
    """The square pieces that lie apart in a photograph; a picture of where they were found is shown."""
    from diffassemble.io.photo.squares import cut_squares

    pieces, shown = cut_squares(found.path, options.size)
    options.show(shown)
    options.say(f"taken for squares: {len(pieces)} pieces in 1 photo")
    return pieces, tuple(f"piece_{index:03d}.png" for index in range(len(pieces)))


def find_board(pieces: ImagePieces, options: OpenOptions) -> Board:
    """The grid that the pieces' borders ask for."""
    from diffassemble.squares.grid import choose_board

    solver = _gallagher(SolverOptions()) if options.make is None else options.make(pieces.kind)
    board = choose_board(pieces, solver, options.seed, bundled_uprighter())
    options.say(f"grid not given: {board.rows}x{board.cols} fits the {len(pieces)} pieces best")
    return board


def _set_aside(puzzle: Puzzle) -> tuple[Puzzle, tuple[str, ...]]:
    from diffassemble.squares.grid import set_aside

    chosen = set_aside(puzzle)
    return chosen.puzzle, chosen.extra


def _drawing() -> Drawing:
    from diffassemble.rendering import flat

    drawn = flat.draw_assembly, flat.draw_before_after, flat.draw_confidence, flat.animate
    return Drawing(flat.draw_pieces, *drawn)


def _right_by_turn(assembly: Answer, truth: Poses) -> dict[int, int]:
    """Pieces in their cells at their turns, after each quarter turn of the whole that fits the board."""
    board = assembly.puzzle.board
    cells, turns = board.snap(assembly.poses)
    true_cells, true_turns = board.snap(truth)
    counts = {}
    for by in board.fitting_turns():
        _, turned_cells, turned_turns = board.turned(cells, turns, by)
        counts[by] = int(((turned_cells == true_cells) & (turned_turns == true_turns)).sum())
    return counts


def _count_right(assembly: Answer, truth: Poses) -> Score:
    """Right as the pieces stand, and at the best turn of the whole."""
    counts = _right_by_turn(assembly, truth)
    return Score(counts[0], max(counts.values()))


def _turned(assembly: Answer, truth: Poses) -> int:
    """By how many degrees the whole lies turned, as most pieces have it."""
    counts = _right_by_turn(assembly, truth)
    return -90 * max(counts, key=lambda by: counts[by]) % 360


def _matches(puzzle: Puzzle) -> Matches:
    from diffassemble.squares.edge_model import find_matches

    return find_matches(puzzle)


SQUARES = Kind(
    name="squares",
    piece="piece",
    whole="picture",
    free="orientation free",
    matches=_matches,
    solvers={
        "diffusion": _diffusion,
        "hybrid": _hybrid,
        "gallagher": _gallagher,
        "yu": _yu,
        "huroyan": _huroyan,
        "identity": lambda options: ChanceSolver("identity", as_listed),
        "random": lambda options: ChanceSolver("random", at_random),
    },
    default_solver="hybrid",
    default_model="jigsaw",
    several=frozenset(),
    prepare=_prepare,
    document=files.DOCUMENT,
    read=read,
    set_aside=_set_aside,
    read_folder=files.read_folder,
    folder_contents=files.folder_contents,
    fields=lambda puzzle: files.board_fields(puzzle.board),
    matrices=lambda puzzle, poses: files.matrices(puzzle.board, poses),
    places=lambda puzzle, poses: files.placements(puzzle.board, poses),
    fitted=files.fitted,
    read_poses=files.read_poses,
    check_locks=files.check_locks,
    further_files=lambda assembly: iter(()),
    drawing=_drawing,
    facts=lambda puzzle: [("grid", f"{puzzle.board.rows}x{puzzle.board.cols}")],
    opening=_OPENING,
    count_right=_count_right,
    turned=_turned,
)
