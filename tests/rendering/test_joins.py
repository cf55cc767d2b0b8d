"""What touches is found where geometry says it is, and joins are opened so that one can see it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import trimesh

from diffassemble.assembly.answer import Answer
from diffassemble.core import FragmentPieces, Mesh, Placements, Poses, Puzzle
from diffassemble.rendering.joins import CONTACT, JOINS, Seams, book, draw_joins, split
from diffassemble.rendering.studio import triangles_of

Bounds = tuple[tuple[float, float, float], tuple[float, float, float]]
LEFT: Bounds = ((0, 0, 0), (0.5, 0.8, 0.4))


def standing(*boxes: Bounds, sure: float = 0.8) -> Answer:
    """Boxes where they are, as an assembly."""
    made, count = [trimesh.creation.box(bounds=box) for box in boxes], len(boxes)
    meshes = [Mesh(torch.tensor(one.vertices).float(), torch.tensor(one.faces)) for one in made]
    points = torch.stack([mesh.vertices for mesh in meshes])
    puzzle = Puzzle(FragmentPieces(points, tuple(meshes), torch.zeros(count, 3)), None, tuple(map(str, range(count))))
    poses, confidence = Poses.identity(count, 3), sure - 0.01 * torch.arange(count)
    return Answer(puzzle, Placements(poses, confidence, objects=torch.tensor((0,) * count)), (), "mend", 1.0)


def right(low: float = 0.0, start: float = 0.5) -> Bounds:
    return (start, low, 0.0), (1.0, low + 0.8, 0.4)


def touching_area(assembly: Answer, first: int = 0, second: int = 1) -> float:
    seams = Seams(assembly)
    return float(seams.bodies[first].areas[seams.contact(first, second)].sum())


def test_split_triangles_are_small_and_the_same_surface() -> None:
    things = triangles_of(standing(LEFT).puzzle.fragments.meshes, 1000)
    fine = split(things, 0.05)
    sides = np.linalg.norm(fine.corners - np.roll(fine.corners, 1, axis=1), axis=2)
    assert sides.max() <= 0.05
    first, second, third = fine.corners.transpose(1, 0, 2)
    across = np.cross(second - first, third - first)
    assert np.linalg.norm(across, axis=1).sum() / 2 == pytest.approx(2 * (0.5 * 0.8 + 0.5 * 0.4 + 0.8 * 0.4), rel=1e-4)
    assert ((across * fine.normals[:, 0]).sum(1) > 0).all()
    assert len(split(fine, 1.0).corners) == len(fine.corners)


def test_what_touches_is_near_and_faces_the_other() -> None:
    both = standing(LEFT, right())
    for pair in ((0, 1), (1, 0)):
        assert touching_area(both, *pair) == pytest.approx(0.8 * 0.4, rel=1e-4)
    assert touching_area(standing(LEFT, right(low=0.4))) == pytest.approx(0.4 * 0.4, rel=0.1)
    assert touching_area(standing(LEFT, right(start=0.508))) == pytest.approx(0.8 * 0.4, rel=1e-4)
    assert touching_area(standing(LEFT, right(start=0.515))) == 0
    # A thin plate: its far side is near, too, but faces away.
    assert touching_area(standing(((0.495, 0, 0), (0.5, 0.8, 0.4)), right()), 0, 1) == pytest.approx(0.32, rel=0.1)


def test_the_neighbour_is_the_one_that_touches_most() -> None:
    seams = Seams(standing(((0, 0, 0), (1, 0.1, 0.4)), ((0, 0.1, 0), (0.3, 0.5, 0.4)), ((0.3, 0.1, 0), (1, 0.5, 0.4))))
    assert (seams.neighbour(0), seams.neighbour(1)) == (2, 2)
    # The least sure first, and no join twice.
    assert seams.chosen == [(2, 0), (1, 2)]
    slices = [((0.03 * n, 0.0, 0.0), (0.03 * (n + 1), 0.5, 0.5)) for n in range(JOINS.most + 6)]
    assert len(Seams(standing(*slices)).chosen) == JOINS.most
    # Unplaced fragments and those of other objects are no neighbours.
    both = standing(LEFT, right())
    assert not draw_joins(both.with_placements(confidence=torch.tensor([1.0, 0.0]), objects=torch.tensor((0, -1))))
    assert not draw_joins(both.with_placements(objects=torch.tensor((0, 1))))


def test_a_book_lies_open_before_the_viewer() -> None:
    assembly = standing(LEFT, right())
    seams = Seams(assembly)
    touching = seams.contact(0, 1), seams.contact(1, 0)
    axes, spine = book((seams.bodies[0], seams.bodies[1]), touching, np.array([0.5, 0.4, 0.0], np.float32))
    assert np.allclose(axes @ axes.T, np.eye(3), atol=1e-6)
    assert np.linalg.det(axes) == pytest.approx(1)
    assert np.allclose(axes[0], [1, 0, 0], atol=1e-6)  # from the first to the second
    assert np.allclose(np.abs(axes[1]), [0, 1, 0], atol=1e-3)  # along the longer side of the seam
    assert np.allclose(axes[2], [0, 0, 1], atol=1e-3)  # away from the middle of the whole
    assert np.allclose(spine, [0.5, 0.4, 0.2], atol=1e-3)


def test_both_breaks_are_seen_in_the_colour_of_contact() -> None:
    ((piece, neighbour, picture, _),) = draw_joins(standing(LEFT, right()))
    assert (piece, neighbour) == (1, 0)
    assert picture.size == JOINS.size
    levels = np.asarray(picture).astype(int)
    wanted = CONTACT > 0.5
    marked = levels[..., wanted].min(-1) > levels[..., ~wanted].max(-1) + 60
    left, other = marked[:, : JOINS.size[0] // 2].sum(), marked[:, JOINS.size[0] // 2 :].sum()
    assert min(left, other) > 0.03 * marked.size
    assert 0.8 < left / other < 1.25  # both halves are alike


def test_clouds_touch_too() -> None:
    both, generator = standing(LEFT, right()), torch.Generator().manual_seed(0)
    points = torch.rand(2, 3, 1000, 3, generator=generator)
    points = torch.where(torch.eye(3, dtype=torch.bool)[:, None], points.round(), points).reshape(2, -1, 3)
    places = points * torch.tensor([0.5, 0.8, 0.4]) + torch.tensor([[[0.0, 0.0, 0.0]], [[0.5, 0.0, 0.0]]])
    clouds = tuple(Mesh(cloud, torch.zeros(0, 3, dtype=torch.long)) for cloud in places)
    pieces = replace(both.puzzle.fragments, meshes=clouds)
    assert len(draw_joins(replace(both, puzzle=replace(both.puzzle, pieces=pieces)))) == 1
