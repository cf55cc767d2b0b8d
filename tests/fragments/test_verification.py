"""Contacts that nothing holds are free, and colours across the seam are evidence only where they vary along it."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
import trimesh
from manifold3d import Manifold

from diffassemble.core import Mesh, Puzzle
from diffassemble.fragments.breaking import mesh_of, scatter
from diffassemble.fragments.clusters import BodySurface, Cluster, FractureSide, Fragment
from diffassemble.fragments.contact import IDENTITY, Pose, compose, inverse, pose_rows, transformed
from diffassemble.fragments.descriptors import fracture_surface, rim_colours
from diffassemble.fragments.matches import prepare
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.pair_search import Sides
from diffassemble.fragments.spatial import voxelise
from diffassemble.fragments.surface import sample
from diffassemble.fragments.verification import (
    Match,
    can_slide,
    colour_evidence,
    hold,
    information,
    seams,
    verify,
)

Paint = Callable[[np.ndarray], np.ndarray]
"""Colours in [0, 1] of places in the whole."""
SPACING = 0.012


def held(points: np.ndarray, normals: np.ndarray, others: np.ndarray) -> np.ndarray:
    """How firmly the six motions are held, the least first."""
    return np.linalg.eigvalsh(information(points - points.mean(0), normals, others))


@pytest.fixture
def flat() -> np.ndarray:
    chance = np.random.default_rng(0)
    return np.concatenate([chance.uniform(-1, 1, (2000, 2)), np.zeros((2000, 1))], 1)


def test_a_plane_slides_two_ways_and_turns_one(flat: np.ndarray) -> None:
    up = np.tile([0.0, 0.0, 1.0], (len(flat), 1))
    numbers = held(flat, up, up)
    assert np.allclose(numbers[:3], 0, atol=1e-12)
    assert numbers[3] > 0.3


def test_a_rod_turns_and_slides_and_a_ball_turns(flat: np.ndarray) -> None:
    angle = np.pi * flat[:, 0]
    around = np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1)
    numbers = held(around + [0, 0, 3] * flat[:, 1:2], around, around)
    assert np.allclose(numbers[:2], 0, atol=1e-3)
    assert numbers[2] > 0.05
    ball = np.random.default_rng(1).normal(size=(4000, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    assert np.allclose(held(ball, ball, ball)[:3], 0, atol=1e-3)


def test_relief_of_both_holds_and_noise_of_each_does_not(flat: np.ndarray) -> None:
    chance = np.random.default_rng(2)

    def tilted(spread: np.ndarray) -> np.ndarray:
        rough = np.concatenate([spread, np.ones((len(flat), 1))], 1)
        return rough / np.linalg.norm(rough, axis=1, keepdims=True)

    relief = 0.3 * np.sin(7 * flat[:, [1, 0]] + [0, 1])
    noise = [0.2 * chance.normal(size=(len(flat), 2)) for _ in range(2)]
    assert held(flat, *(tilted(relief + one) for one in noise))[0] > 0.01
    assert held(flat, tilted(noise[0]), tilted(noise[0]))[0] > 0.01
    assert held(flat, *(tilted(one) for one in noise))[0] < 0.003


def sawn(whole: Manifold, models: FractureModels) -> tuple[Sides, Pose]:
    """A solid sawn in two by a level plane: both breaks, and the pose of the first at the second."""
    parts = [mesh_of(part) for part in whole.split_by_plane((0.0, 0.0, 1.0), 0.1)]
    puzzle = scatter(parts, torch.Generator().manual_seed(0))
    assert puzzle.truth is not None
    fragments = prepare(puzzle.fragments, models, 0)
    own, other = (Cluster(fragments, {piece: IDENTITY}).side(1) for piece in (0, 1))
    assert own is not None
    assert other is not None
    first, second = pose_rows(puzzle.truth)
    return Sides(own, other, fragments[0].spacing / 2), compose(inverse(second), first)


def slid(pose: Pose, sides: Sides, far: float) -> Pose:
    """The same, moved along the cut."""
    along = np.linalg.svd(sides.own.points - sides.own.points.mean(0), full_matrices=False)[2][0]
    return pose + np.concatenate([np.zeros(9), far * pose[:9].reshape(3, 3) @ along])


def test_rims_hold_a_sawn_bar_with_corners_but_not_a_round_one(models: FractureModels) -> None:
    bar, true = sawn(Manifold.cube((0.7, 0.4, 1.0), True), models)
    right, moved = hold(*seams(true, bar)), hold(*seams(slid(true, bar, 0.2), bar))
    assert right.breaks < 0.02, "planes hold nothing"
    assert right.rims > 0.1
    assert right.around > 2 * moved.around
    assert can_slide(*seams(slid(true, bar, 0.2), bar))
    rod, true = sawn(Manifold.cylinder(1.0, 0.3, 0.3, 128, True), models)
    assert hold(*seams(true, rod)).rims < 0.02, "it can be turned"
    assert can_slide(*seams(true, rod))


def test_a_rough_break_holds(clusters: tuple[Cluster, Cluster], true_pose: np.ndarray) -> None:
    own, other = (cluster.side(1) for cluster in clusters)
    assert own is not None
    assert other is not None
    both = seams(true_pose, Sides(own, other, clusters[0].fragments[0].spacing / 2))
    assert hold(*both).breaks > 0.15
    assert not can_slide(*both)


def blotches(places: np.ndarray) -> np.ndarray:
    """Dark blue and light ochre, a few times across the whole, with some noise."""
    share = 0.5 + 0.5 * np.clip(np.sin(9 * places + 1).sum(1, keepdims=True), -1, 1)
    colours = np.array([0.2, 0.2, 0.4]) * (1 - share) + np.array([0.9, 0.7, 0.5]) * share
    return (colours + np.random.default_rng(0).normal(scale=0.02, size=places.shape)).astype(np.float32)


def elsewhere(places: np.ndarray) -> np.ndarray:
    """The same pattern in another place."""
    return blotches(-places - 0.2)


def noisy(places: np.ndarray) -> np.ndarray:
    """Another colour at every point."""
    return np.random.default_rng(len(places)).random(places.shape).astype(np.float32)


def plain(red: float) -> Paint:
    return lambda places: np.tile(np.array([red, 0.5, 0.4], np.float32), (len(places), 1))


def sawn_side(low: float, high: float) -> FractureSide:
    """A part of a bar, from low to high along x, that was sawn off at x = 0; in blotches."""
    box = trimesh.creation.box(bounds=[[low, -0.2, -0.3], [high, 0.2, 0.3]])
    mesh = Mesh(torch.from_numpy(np.array(box.vertices)).float(), torch.from_numpy(np.array(box.faces)))
    whole = sample(mesh, SPACING, torch.Generator().manual_seed(0))
    broken = np.abs(whole.points[:, 0]) < 1e-6
    surface, _ = fracture_surface(whole, broken, SPACING)
    surface = surface._replace(colours=rim_colours(surface, whole, blotches(whole.points), SPACING))
    body = BodySurface(whole.points, whole.normals, SPACING, voxelise(whole.points, SPACING), broken)
    return FractureSide(surface, voxelise(surface.points, SPACING, closed=False), body, whole.points[::50])


def test_where_shapes_fit_two_ways_colours_decide() -> None:
    sides = Sides(sawn_side(-0.4, 0), sawn_side(0, 0.5), SPACING)
    half_turn = np.array([1.0, 0, 0, 0, -1, 0, 0, 0, -1, 0, 0, 0])
    apart = IDENTITY + np.eye(12)[11]
    true, turned, nothing = colour_evidence([seams(pose, sides)[0] for pose in (IDENTITY, half_turn, apart)])
    assert 1 < true <= 2
    assert -2 <= turned < -1
    assert nothing == 0


@pytest.fixture(scope="module")
def verified(
    broken: Puzzle, clusters: tuple[Cluster, Cluster], true_pose: np.ndarray, models: FractureModels
) -> Callable[[Paint | None, Paint | None], list[Match]]:
    """The halves of the block, each in its paint, verified at their true pose and at one beside it."""
    assert broken.truth is not None
    truth, level, spacing = pose_rows(broken.truth), 1, clusters[0].fragments[0].spacing

    def painted(cluster: Cluster, paint: Paint | None) -> FractureSide:
        side, (piece,) = cluster.side(level), cluster.members
        assert side is not None
        if paint is None:
            return side
        whole = cluster.fragments[piece].pyramid.levels[0]
        known = rim_colours(side.surface, whole, paint(transformed(truth[piece], whole.points)), spacing)
        return side._replace(surface=side.surface._replace(colours=known))

    def verify_in(first: Paint | None, second: Paint | None, by_shape: float | None = None) -> list[Match]:
        """By the networks, or with all poses equally probable by their shape."""
        judge = copy(models)
        if by_shape is not None:
            judge.verification = lambda numbers: np.full(len(numbers), by_shape)  # type: ignore[method-assign]
        sides = painted(clusters[0], first), painted(clusters[1], second)
        poses = np.stack([true_pose, true_pose + 1.2 * spacing * np.eye(12)[9:].sum(0)])
        return verify(poses, np.array([3, 3]), Sides(*sides, spacing / 2**level), level, judge)

    return verify_in


def odds(match: Match) -> float:
    return float(np.log(match.probability / (1 - match.probability)))


def test_paint_that_goes_on_raises_a_match_and_other_paint_lowers_it(
    verified: Callable[..., list[Match]],
) -> None:
    by_shape, unlike = verified(None, None)[0], verified(blotches, elsewhere)[0]
    assert unlike.probability < by_shape.probability
    assert -2.1 < odds(unlike) - odds(by_shape) < -0.7
    by_shape, alike = verified(None, None, 0.3)[0], verified(blotches, blotches, 0.3)[0]
    assert 0.7 < odds(alike) - odds(by_shape) < 2.1


def test_paint_raises_nothing_above_the_ceiling(verified: Callable[..., list[Match]]) -> None:
    assert verified(blotches, blotches, 0.88)[0].probability == pytest.approx(0.9)
    assert verified(blotches, blotches, 0.97)[0].probability == pytest.approx(0.97)
    assert verified(blotches, elsewhere, 0.97)[0].probability < 0.97


@pytest.mark.parametrize(
    "paints",
    [(plain(0.8), plain(0.8)), (plain(0.8), plain(0.1)), (plain(0.8), blotches), (blotches, None), (noisy, noisy)],
)
def test_uninformative_colours_change_nothing(
    verified: Callable[[Paint | None, Paint | None], list[Match]], paints: tuple[Paint | None, Paint | None]
) -> None:
    assert [match.probability for match in verified(*paints)] == [match.probability for match in verified(None, None)]


def test_fragments_have_the_colours_beside_their_breaks(
    halves: list[Mesh], models: FractureModels, clusters: tuple[Cluster, Cluster]
) -> None:
    fine = trimesh.remesh.subdivide_to_size(halves[0].vertices.numpy(), halves[0].faces.numpy(), 0.03)
    mesh = Mesh(torch.from_numpy(fine[0]).float(), torch.from_numpy(fine[1]).long())
    levels = torch.from_numpy((255 * (0.5 + 0.4 * mesh.vertices.numpy())).round().astype(np.uint8))
    surface = Fragment(replace(mesh, colours=levels), clusters[0].fragments[0].spacing, models, 0).fracture(1)
    known = np.isfinite(surface.colours[:, 0])
    assert known[surface.rim < 2].mean() > 0.7
    beside = 0.5 + 0.4 * (surface.points + surface.edge)[known]
    assert np.abs(surface.colours[known] - beside).max() < 0.05
