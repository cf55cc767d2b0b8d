"""Fragments of an object as a kind: meshes and clouds in space."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import torch

from diffassemble.assembly import scoring
from diffassemble.assembly.answer import Answer, assemble
from diffassemble.assembly.kind import Drawing, Files, Kind, Score, SolverOptions
from diffassemble.core import Matches, Mesh, Poses, Puzzle, Solver
from diffassemble.core.poses import random_rotations
from diffassemble.core.solver import ChanceSolver
from diffassemble.fragments import matches
from diffassemble.fragments.diffusion import FragmentDiffusionSolver, FragmentHybridSolver, TreeSolver
from diffassemble.fragments.matches import PairSearchCache
from diffassemble.fragments.mend import MendSolver
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.orientation import OrientationModel
from diffassemble.fragments.shapes import fracture_file
from diffassemble.fragments.standing import CanonicalRotation, stood_up
from diffassemble.io import fragments as files
from diffassemble.kinds import load_fitting
from diffassemble.network.pretrained import bundled_models

FRACTURE_MATCHING, ORIENTATION = "fracture-matching", "orientation"
# Deviation of where fragments belong, the same along all axes, of the whole object's longest side: the root mean square
# over the 1029 pieces of the training objects of Breaking Bad's preview fractures (everyday).
SPREAD = 0.2


def _search() -> PairSearchCache:
    return PairSearchCache(FractureModels.from_pretrained(FRACTURE_MATCHING))


def find_matches(puzzle: Puzzle, budget: float = math.inf, search: PairSearchCache | None = None) -> Matches:
    """The few most probable ways in which every two fragments may touch."""
    return matches.find_matches((search or _search())(puzzle.fragments), budget)


def _mend(options: SolverOptions, search: PairSearchCache | None = None) -> Solver:
    return MendSolver((search or _search()).models, options.budget, options.several, search=search)


def _diffusion(options: SolverOptions, search: PairSearchCache | None = None) -> Solver:
    network = load_fitting(options.model, lambda found: found.space.translation_width == 3, FRAGMENTS.default_model)
    finder = partial(find_matches, budget=options.budget, search=search or _search()) if network.pairwise else None
    standing = _canonical_rotation() if network.pairwise else None
    return FragmentDiffusionSolver(network, options.steps, options.samples, 0.0, finder, standing)


def _tree(options: SolverOptions) -> Solver:
    return TreeSolver(partial(find_matches, budget=options.budget, search=_search()))


def _hybrid(options: SolverOptions) -> Solver:
    search = _search()
    return FragmentHybridSolver(_mend(options, search), _diffusion(options, search), _canonical_rotation())


def _canonical_rotation() -> CanonicalRotation | None:
    """The bundled estimate of which way objects are upright, if there is one."""
    known = ORIENTATION in bundled_models()
    return OrientationModel.from_pretrained(ORIENTATION).canonical_rotation if known else None


def at_random(puzzle: Puzzle, generator: torch.Generator) -> Poses:
    """Normally distributed about the middle, with uniformly distributed rotations."""
    places = SPREAD * torch.randn(len(puzzle), 3, generator=generator)
    return Poses(random_rotations(len(puzzle), generator), places)


def _prepare() -> None:
    """Solve and draw a broken bowl with and without colours, and clouds of its points, by solvers of every sort."""
    puzzle = fracture_file("bowl", 3, 0)
    own, nothing = puzzle.fragments.meshes, torch.zeros(0, 3, dtype=torch.long)
    clouds = tuple(Mesh(points, nothing) for points in puzzle.fragments.points)
    coloured = tuple(replace(mesh, colours=(200 * mesh.vertices).int().to(torch.uint8)) for mesh in own)
    mend, diffusion = _mend(SolverOptions()), _diffusion(SolverOptions(FRAGMENTS.default_model, samples=1, steps=1))
    for meshes, solver in ((own, diffusion), (coloured, mend), (clouds, mend)):
        shown = replace(puzzle, pieces=replace(puzzle.fragments, meshes=meshes))
        _drawing().before_after(assemble(shown, solver))


def _drawing() -> Drawing:
    from diffassemble.rendering import joins, mesh

    return Drawing(*mesh.DRAWN, _standing, mesh.draw_views, joins.draw_joins)


def _standing(assembly: Answer) -> Answer:
    """Upright where fragments were joined; locked pieces, and answers of diffusion alone, keep their rotation."""
    if assembly.objects is None or assembly.puzzle.locks is not None:
        return assembly
    estimated = assembly.solver not in ("hybrid", "diffusion")
    return stood_up(assembly, _canonical_rotation() if estimated else None)


def _in_palette(assembly: Answer) -> Answer:
    pieces = assembly.puzzle.fragments
    bare = replace(pieces, meshes=tuple(mesh.uncoloured() for mesh in pieces.meshes))
    return replace(assembly, puzzle=replace(assembly.puzzle, pieces=bare))


def _count_right(assembly: Answer, truth: Poses) -> Score:
    """Fragments close to where they belong, as they are and relative to the largest."""
    fragments = assembly.puzzle.fragments
    anchored = scoring.anchored(assembly.poses, truth, int(scoring.piece_sizes(fragments).argmax()))
    apart = [scoring.piece_chamfer(fragments.points, poses, truth) for poses in (assembly.poses, anchored)]
    return Score(*(int(scoring.right_pieces(chamfer).sum()) for chamfer in apart))


FRAGMENTS = Kind(
    name="fragments",
    piece="fragment",
    whole="object",
    matches=find_matches,
    solvers={
        "mend": _mend,
        "diffusion": _diffusion,
        "tree": _tree,
        "hybrid": _hybrid,
        "identity": lambda options: ChanceSolver("identity", lambda puzzle, generator: Poses.identity(len(puzzle), 3)),
        "random": lambda options: ChanceSolver("random", at_random),
    },
    default_solver="mend",
    default_model="fragments",
    several=frozenset({"mend"}),
    prepare=_prepare,
    files=Files(
        read=lambda found, options: files.read_fragments(found.path),
        read_folder=files.read_folder,
        folder_contents=files.folder_contents,
        matrices=lambda puzzle, poses: files.file_matrices(puzzle.fragments, poses),
        places=lambda puzzle, poses: [{}] * len(puzzle),
        read_poses=files.read_poses,
        fields=lambda puzzle: {"unit": puzzle.fragments.unit},
        further=files.object_contents,
    ),
    drawing=_drawing,
    count_right=_count_right,
    in_palette=_in_palette,
)
