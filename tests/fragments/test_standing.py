"""Objects are shown upright, on one table, and what was left out lies beside them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from manifold3d import CrossSection, Manifold
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.core import Locks, Placements, Poses, Puzzle
from diffassemble.core.poses import random_rotations
from diffassemble.fragments.breaking import mesh_of, scatter
from diffassemble.fragments.standing import settling, stood_up
from diffassemble.kinds.fragments import FRAGMENTS

DOWN = torch.tensor([0.0, -1.0, 0.0])


@pytest.fixture(scope="module")
def cone() -> Puzzle:
    """A truncated cone, the wide side below, cut in four, with its truth; the last is the smallest."""
    whole = Manifold.cylinder(0.8, 0.4, 0.2, 32).rotate((-90.0, 0.0, 0.0))
    parts = [half for part in whole.split_by_plane((1, 0, 0), 0.05) for half in part.split_by_plane((0, 0, 1), 0.05)]
    puzzle = scatter([mesh_of(part, 1.0, torch.zeros(3)) for part in parts], torch.Generator().manual_seed(0))
    return puzzle.reordered(puzzle.fragments.areas.argsort(descending=True))


@pytest.fixture
def tilted(cone: Puzzle) -> Answer:
    """All but the last put together, turned anyhow; the last lies beside."""
    assert cone.truth is not None
    turn = Poses(random_rotations(1, torch.Generator().manual_seed(4)), torch.tensor([[0.3, 0.1, 0.0]]))
    poses = turn[[0] * 4] @ cone.truth
    poses.translation[3] = torch.tensor([2.0, 0.7, 0.1])
    sure = torch.tensor([1.0, 0.9, 0.9, 0.0])
    return Answer(
        cone.without_truth(), Placements(poses, sure, objects=torch.tensor((0, 0, 0, -1))), (poses,), "mend", 1.0
    )


def perfect(assembly: Answer, cone: Puzzle, error: float = 0.0):  # type: ignore[no-untyped-def]
    """What a network should say, but for a tilt about z."""
    assert cone.truth is not None
    c, s = torch.tensor(error).cos(), torch.tensor(error).sin()
    tilt = torch.tensor([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    turn = tilt @ cone.truth.rotation[0] @ assembly.poses.rotation[0].T
    return lambda cloud: turn


def lowest(assembly: Answer, piece: int) -> float:
    return float(corners(assembly, piece)[:, 1].min())


def corners(assembly: Answer, piece: int) -> Tensor:
    poses, mesh = assembly.poses, assembly.puzzle.fragments.meshes[piece]
    return mesh.vertices @ poses.rotation[piece].T + poses.translation[piece]


@pytest.mark.parametrize("error", [0.0, 0.2])
def test_it_stands_on_its_base(tilted: Answer, cone: Puzzle, error: float) -> None:
    assert cone.truth is not None
    shown = stood_up(tilted, perfect(tilted, cone, error))
    for piece in range(3):
        relative = shown.poses.rotation[piece] @ cone.truth.rotation[piece].T
        assert torch.allclose(relative @ DOWN, DOWN, atol=1e-2)
        assert lowest(shown, piece) == pytest.approx(lowest(shown, 0), abs=1e-3)
    apart = (shown.poses.translation[1] - shown.poses.translation[0]).norm()
    assert apart == pytest.approx(float((cone.truth.translation[1] - cone.truth.translation[0]).norm()), abs=1e-4)


def test_what_was_left_out_lies_beside_on_the_same_table(tilted: Answer, cone: Puzzle) -> None:
    shown = stood_up(tilted, perfect(tilted, cone))
    assert lowest(shown, 3) == pytest.approx(lowest(shown, 0), abs=1e-4)
    reach = max(float(corners(shown, piece)[:, 0].max()) for piece in range(3))
    assert float(corners(shown, 3)[:, 0].min()) == pytest.approx(reach + 0.1, abs=1e-3)
    assert torch.allclose(shown.poses.rotation[3], tilted.poses.rotation[3])


def test_the_way_there_ends_where_the_object_stands(tilted: Answer, cone: Puzzle) -> None:
    shown = stood_up(tilted, perfect(tilted, cone))
    assert torch.allclose(shown.history[-1].translation[:3], shown.poses.translation[:3], atol=1e-5)
    assert torch.allclose(shown.history[-1].rotation[:3], shown.poses.rotation[:3], atol=1e-5)
    assert shown.confidence is tilted.confidence


@pytest.mark.parametrize("told", [True, False])
def test_left_out_fragments_that_lie_together_stay_together(tilted: Answer, cone: Puzzle, told: bool) -> None:
    two = tilted.with_placements(objects=torch.tensor((0, 0, -1, -1)), confidence=torch.tensor([1.0, 0.9, 0.0, 0.0]))
    two.poses.translation[2] = torch.tensor([2.1, 0.7, 0.1])
    before = two.poses.translation[3] - two.poses.translation[2]
    shown = stood_up(two, perfect(tilted, cone) if told else None)
    after = shown.poses.translation[3] - shown.poses.translation[2]
    assert bool(torch.allclose(before, after, atol=1e-5)) == told
    edges = [corners(shown, piece)[:, 0] for piece in (2, 3)]
    assert (float(edges[0].max()) < float(edges[1].min())) != told


def test_a_second_object_stands_beside_the_first(tilted: Answer, cone: Puzzle) -> None:
    two = tilted.with_placements(objects=torch.tensor((0, 0, 1, 1)), confidence=torch.ones(4))
    shown = stood_up(two, None)
    edges = [torch.cat([corners(shown, piece)[:, 0] for piece in own]) for own in ((0, 1), (2, 3))]
    assert edges[0].max() < edges[1].min()
    assert min(lowest(shown, 2), lowest(shown, 3)) == pytest.approx(min(lowest(shown, 0), lowest(shown, 1)), abs=1e-4)


def test_objects_without_a_side_to_stand_on_stay() -> None:
    tip = torch.tensor([[0.0, -1, 0], [1, 1, 1], [-1, 1, 1], [0, 1, -1]])
    assert torch.equal(settling(tip, tip.mean(0)), torch.eye(3))
    flat = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 0, 1]])
    assert torch.equal(settling(flat, flat.mean(0)), torch.eye(3))


def test_what_is_locked_or_guessed_by_diffusion_is_drawn_as_it_stands(tilted: Answer) -> None:
    standing = FRAGMENTS.drawing().standing
    locked = replace(tilted, puzzle=replace(tilted.puzzle, locks=Locks(torch.arange(4) == 0, tilted.poses)))
    assert standing(locked) is locked
    alone = tilted.with_placements(objects=None)
    assert standing(alone) is alone


def test_the_network_stands_a_bowl_up() -> None:
    """The bundled network knows bowls; the rim is above."""
    outline = [(0.0, 0.0), (0.2, 0.0), (0.45, 0.2), (0.5, 0.4), (0.46, 0.4), (0.41, 0.22), (0.18, 0.04), (0.0, 0.04)]
    bowl = CrossSection([outline]).revolve(64).rotate([-90.0, 0.0, 0.0])
    halves = [mesh_of(half, 1.0, torch.zeros(3)) for half in bowl.split_by_plane((1.0, 0.1, 0.2), 0.05)]
    puzzle = scatter(halves, torch.Generator().manual_seed(1))
    assert puzzle.truth is not None
    turn = Poses(random_rotations(1, torch.Generator().manual_seed(7)), torch.zeros(1, 3))
    poses = turn[[0, 0]] @ puzzle.truth
    assembly = Answer(
        puzzle.without_truth(), Placements(poses, torch.ones(2), objects=torch.tensor((0, 0))), (), "mend", 1.0
    )
    shown = FRAGMENTS.drawing().standing(assembly)
    relative = shown.poses.rotation[0] @ puzzle.truth.rotation[0].T
    assert float((relative @ DOWN) @ DOWN) > 0.999
