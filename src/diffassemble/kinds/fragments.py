"""Fragments of an object as a kind: meshes and clouds in space."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import torch

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.assembly.kind import Drawing, Kind, Score, SolverOptions
from diffassemble.core import InputError, Matches, Mesh, Poses, Puzzle, Solver
from diffassemble.core.solver import ChanceSolver
from diffassemble.io import fragments as files

if TYPE_CHECKING:
    from diffassemble.fragments.matches import PairSearchCache
    from diffassemble.fragments.standing import CanonicalRotation
    from diffassemble.network.denoiser import PoseNetwork

FRACTURE_MATCHING, ORIENTATION = "fracture-matching", "orientation"
# Deviation of where fragments belong, the same along all axes, of the whole object's longest side: the root mean square
# over the 1029 pieces of the training objects of Breaking Bad's preview fractures (everyday).
SPREAD = 0.2

_OPENING = """
<ul>
<li><b>CloudCompare</b>: open the files in <code>posed/</code>, they stand in their places, in the colours and under the
pictures that they came with. Or open your own fragments,
choose Edit → Apply transformation, and paste the fragment's four lines of <code>matrices.txt</code>.</li>
<li><b>MeshLab</b>: File → Import Mesh, choose all files in <code>posed/</code> at once.</li>
<li><b>Blender</b>: File → Import → glTF 2.0, choose <code>assembled.glb</code>; every fragment is an object of its own
name, with its mesh as it was given: the object's transformation puts it in its place; cleared (Alt G, Alt R), it lies
as it was scanned.</li>
</ul>"""


def _spatial(network: PoseNetwork, model: str) -> PoseNetwork:
    """The same network, if it is one for fragments of an object."""
    if network.space.translation_width != 3:
        raise InputError(f"model '{model}' is for pieces of a picture; these are fragments of an object")
    return network


def _mend(options: SolverOptions, search: PairSearchCache | None = None) -> Solver:
    from diffassemble.fragments.mend import MendSolver

    models = (search or _search()).models
    return MendSolver(models, options.budget, options.several, search=search)


def _search() -> PairSearchCache:
    """Who compares fragments."""
    from diffassemble.fragments.matches import PairSearchCache
    from diffassemble.fragments.model import FractureModels

    return PairSearchCache(FractureModels.from_pretrained(FRACTURE_MATCHING))


def find_matches(puzzle: Puzzle, budget: float = math.inf, search: PairSearchCache | None = None) -> Matches:
    """The few most probable ways in which every two fragments may touch."""
    from diffassemble.fragments import matches

    return matches.find_matches((search or _search())(puzzle.fragments), budget)


def _diffusion(options: SolverOptions, search: PairSearchCache | None = None) -> Solver:
    from diffassemble.fragments.diffusion import FragmentDiffusionSolver
    from diffassemble.network.loading import load_network

    network = _spatial(load_network(options.model), options.model)
    finder = partial(find_matches, budget=options.budget, search=search or _search()) if network.pairwise else None
    standing = _canonical_rotation() if network.pairwise else None
    return FragmentDiffusionSolver(network, options.steps, options.samples, 0.0, finder, standing)


def _tree(options: SolverOptions) -> Solver:
    from diffassemble.fragments.diffusion import TreeSolver

    return TreeSolver(partial(find_matches, budget=options.budget, search=_search()))


def _canonical_rotation() -> CanonicalRotation | None:
    """Who knows how objects stand, if anybody does."""
    from diffassemble.fragments.orientation import OrientationModel
    from diffassemble.network.pretrained import bundled_models

    if ORIENTATION not in bundled_models():
        return None
    return OrientationModel.from_pretrained(ORIENTATION).canonical_rotation


def _hybrid(options: SolverOptions) -> Solver:
    from diffassemble.fragments.diffusion import FragmentHybridSolver

    search = _search()
    return FragmentHybridSolver(_mend(options, search), _diffusion(options, search), _canonical_rotation())


def at_random(puzzle: Puzzle, generator: torch.Generator) -> Poses:
    """Normally distributed about the middle, all rotations alike."""
    from diffassemble.core.poses import random_rotations

    places = SPREAD * torch.randn(len(puzzle), 3, generator=generator)
    return Poses(random_rotations(len(puzzle), generator), places)


def _prepare() -> None:
    """Solve and draw a broken bowl with and without colours, and clouds of its points, by solvers of every sort."""
    from diffassemble.fragments.shapes import fracture_file

    puzzle = fracture_file("bowl", 3, 0)
    nothing = torch.zeros(0, 3, dtype=torch.long)
    clouds = tuple(Mesh(points, nothing) for points in puzzle.fragments.points)
    coloured = tuple(
        replace(mesh, colours=(200 * mesh.vertices).int().to(torch.uint8)) for mesh in puzzle.fragments.meshes
    )
    mend, diffusion = _mend(SolverOptions()), _diffusion(SolverOptions(FRAGMENTS.default_model, samples=1, steps=1))
    for meshes, solver in ((puzzle.fragments.meshes, diffusion), (coloured, mend), (clouds, mend)):
        pieces = replace(puzzle.fragments, meshes=meshes)
        _drawing().before_after(assemble(replace(puzzle, pieces=pieces), solver))


def _set_aside(puzzle: Puzzle) -> tuple[Puzzle, tuple[str, ...]]:
    raise InputError("--extra is for pictures; mend leaves out fragments that fit nowhere by itself")


def _drawing() -> Drawing:
    from diffassemble.rendering import joins, mesh

    drawn = mesh.draw_assembly, mesh.draw_before_after, mesh.draw_confidence, mesh.animate
    return Drawing(mesh.draw_pieces, *drawn, _standing, mesh.draw_views, joins.draw_joins)


def _standing(assembly: Answer) -> Answer:
    """Upright where fragments were joined; what is locked, or posed by diffusion alone, stays as it stands."""
    from diffassemble.fragments.standing import stood_up

    if assembly.objects is None or assembly.puzzle.locks is not None:
        return assembly
    knows = assembly.solver not in ("hybrid", "diffusion")
    return stood_up(assembly, _canonical_rotation() if knows else None)


def _in_palette(assembly: Answer) -> Answer:
    pieces = assembly.puzzle.fragments
    bare = replace(pieces, meshes=tuple(mesh.uncoloured() for mesh in pieces.meshes))
    return replace(assembly, puzzle=replace(assembly.puzzle, pieces=bare))


def _count_right(assembly: Answer, truth: Poses) -> Score:
    """Fragments close to where they belong, as they stand and as seen from the largest."""
    from diffassemble.assembly import scoring

    fragments = assembly.puzzle.fragments
    largest = int(scoring.piece_sizes(fragments).argmax())
    counts = []
    for answer in (assembly.poses, scoring.anchored(assembly.poses, truth, largest)):
        chamfer = scoring.piece_chamfer(fragments.points, answer, truth)
        counts.append(int(scoring.right_pieces(chamfer).sum()))
    return Score(*counts)


FRAGMENTS = Kind(
    name="fragments",
    piece="fragment",
    whole="object",
    free="as seen from the largest",
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
    document=files.DOCUMENT,
    read=lambda found, options: files.read_fragments(found.path),
    set_aside=_set_aside,
    read_folder=files.read_folder,
    folder_contents=files.folder_contents,
    fields=lambda puzzle: {"unit": puzzle.fragments.unit},
    matrices=lambda puzzle, poses: files.file_matrices(puzzle.fragments, poses),
    places=lambda puzzle, poses: [{}] * len(puzzle),
    fitted=lambda puzzle, document, source: puzzle,
    read_poses=files.read_poses,
    check_locks=lambda puzzle, poses, held, source: None,
    further_files=files.object_contents,
    drawing=_drawing,
    facts=lambda puzzle: [],
    opening=_OPENING,
    count_right=_count_right,
    in_palette=_in_palette,
)
