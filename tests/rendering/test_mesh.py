"""Broken objects: laid out on a table, on their way, and in pictures, of any kind and number."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import roma
import torch
from PIL import Image

from diffassemble.assembly.answer import Answer
from diffassemble.core import FragmentPieces, Mesh, Placements, Poses, Puzzle
from diffassemble.core.poses import random_rotations
from diffassemble.rendering import mesh
from diffassemble.rendering.animation import along, encode_gif
from diffassemble.rendering.picture import confidence_colour


def boxes(count: int, seed: int = 0) -> FragmentPieces:
    """Clouds of very different sizes."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.rand(count, 1, 3, generator=generator) ** 3 + 0.01
    points = (torch.rand(count, 50, 3, generator=generator) - 0.5) * sizes
    meshes = tuple(Mesh(cloud, torch.zeros(0, 3, dtype=torch.long)) for cloud in points)
    return FragmentPieces(points, meshes, torch.zeros(count, 3))


@pytest.mark.parametrize("count", [1, 2, 7, 200])
def test_fragments_stand_apart_on_the_table(count: int) -> None:
    pieces = boxes(count)
    placed = mesh.laid_out(pieces, height=-0.3).apply(pieces.points).numpy()
    assert np.allclose(placed[..., 1].min(1), -0.3, atol=1e-5)
    low, high = placed[..., [0, 2]].min(1), placed[..., [0, 2]].max(1)
    apart = (low[:, None] > high[None]).any(-1)
    assert (apart | apart.T | np.eye(count, dtype=bool)).all()
    extent = high.max(0) - low.min(0)
    assert np.allclose((high.max(0) + low.min(0)) / 2, 0, atol=0.2 * extent.max())


def test_flat_things_lie_flat_after_the_least_turn() -> None:
    generator = torch.Generator().manual_seed(0)
    flat = torch.randn(1, 200, 3, generator=generator) * torch.tensor([1.0, 0.05, 2.0])
    assert np.allclose(mesh.lying_flat(flat)[0], np.eye(3), atol=0.02)
    tilt = torch.linalg.qr(torch.randn(3, 3, generator=generator))[0]
    turn = mesh.lying_flat(flat @ tilt.T)[0]
    assert np.allclose(turn @ turn.T, np.eye(3), atol=1e-5)
    assert np.linalg.det(turn) == pytest.approx(1, abs=1e-5)
    assert np.ptp((flat @ tilt.T)[0].numpy() @ turn.T, axis=0)[1] < 0.5


def test_vertices_count_not_only_points(broken_bowl: Puzzle) -> None:
    pieces = broken_bowl.fragments
    large = replace(pieces, meshes=tuple(Mesh(3 * mesh.vertices, mesh.faces) for mesh in pieces.meshes))
    poses = mesh.laid_out(large)
    lowest = [float((poses[[i]].apply(mesh.vertices[None]))[..., 1].min()) for i, mesh in enumerate(large.meshes)]
    assert np.allclose(lowest, 0, atol=1e-5)


def test_motion_between_stations_is_smooth_proper_and_the_shortest() -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = (Poses(random_rotations(20, generator), torch.randn(20, 3, generator=generator)) for _ in range(2))
    whole = roma.rotmat_geodesic_distance(first.rotation, second.rotation)
    part = along([first, second], torch.full((20,), 0.3))
    assert torch.allclose(roma.rotmat_geodesic_distance(first.rotation, part.rotation), 0.3 * whole, atol=1e-3)
    assert torch.allclose(part.translation, first.translation.lerp(second.translation, 0.3), atol=1e-5)
    poses = [along([first, second, first], torch.full((20,), 0.02 * step)) for step in range(101)]
    for before, after in pairwise(poses):
        assert float(roma.rotmat_geodesic_distance(before.rotation, after.rotation).max()) < 0.1
        assert roma.is_rotation_matrix(after.rotation, 1e-4)
    for end, station in ((poses[0], first), (poses[50], second), (poses[100], first)):
        assert torch.allclose(end.rotation, station.rotation, atol=1e-4)


@pytest.fixture(autouse=True)
def small_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half as wide as usual, for speed."""
    monkeypatch.setattr(mesh, "MESH_STYLE", replace(mesh.MESH_STYLE, picture=(480, 420), panel=(240, 210)))


def assembled(puzzle: Puzzle, history: tuple[Poses, ...] = ()) -> Answer:
    assert puzzle.truth is not None
    return Answer(puzzle, Placements(puzzle.truth, torch.linspace(0, 1, len(puzzle))), history, "oracle", 0.1)


def coloured(picture: Image.Image) -> np.ndarray:
    """Where things are: the table, its shadows and the contours have no colour."""
    levels = np.asarray(picture).astype(int)
    return levels.max(-1) - levels.min(-1) > 18


def test_the_last_frame_shows_what_the_picture_shows(broken_bowl: Puzzle) -> None:
    # Early guesses may be no rotations, and far away.
    history = tuple(Poses(s * broken_bowl.truth.rotation, broken_bowl.truth.translation * s) for s in (300.0, 2.0, 1.0))
    assembly = assembled(broken_bowl, history)
    still, frames = mesh.draw_assembly(assembly), mesh.animate(assembly, frames=3)
    assert (len(frames), len({frame.size for frame in frames})) == (3, 1)
    last = coloured(frames[-1])
    expected = coloured(still.resize(frames[-1].size, Image.Resampling.BOX))
    assert 0.1 < last.mean() < 0.8
    assert (last != expected).mean() < 0.02
    assert (coloured(frames[0]) != expected).mean() > 0.05


def test_the_object_fills_the_picture_the_same_every_time(broken_bowl: Puzzle) -> None:
    assembly = assembled(broken_bowl)
    rows, columns = np.nonzero(coloured(mesh.draw_assembly(assembly)))
    assert min(columns.min(), 480 - columns.max(), rows.min()) > 25
    assert np.ptp(columns) > 350
    first, second = (encode_gif(mesh.animate(assembly, frames=2)) for _ in range(2))
    assert first == second
    assert Image.open(io.BytesIO(first)).size == (480, 420)


def test_the_truth_is_shown_only_if_it_is_known(broken_bowl: Puzzle) -> None:
    assembly = assembled(broken_bowl)
    known = mesh.draw_before_after(assembly)
    unknown = mesh.draw_before_after(replace(assembly, puzzle=broken_bowl.without_truth()))
    assert known.width > unknown.width + 200
    assert known.height == unknown.height
    panel = np.asarray(unknown)[:, 20:-20]
    assert np.array_equal(np.asarray(known)[:, 20 : 20 + panel.shape[1]], panel)


def test_confidence_colours_the_fragments(broken_bowl: Puzzle) -> None:
    for sure in (0.0, 1.0):
        assembly = assembled(broken_bowl).with_placements(confidence=torch.full((len(broken_bowl),), sure))
        picture = mesh.draw_confidence(assembly)
        object_ = np.asarray(picture)[20:430][coloured(picture)[20:430]].astype(float).mean(0)
        assert np.argmax(object_) == np.argmax(confidence_colour(sure))


def test_three_sides_show_what_one_hides(broken_bowl: Puzzle) -> None:
    assembly = assembled(broken_bowl)
    picture = mesh.draw_views(assembly)
    assert picture.width == 3 * 240
    panels = [coloured(picture)[30:, start : start + 240] for start in (0, 240, 480)]
    assert all(0.1 < panel.mean() < 0.8 for panel in panels)
    # A bowl is wider than high from the front, and round from above.
    widths, heights = ([np.ptp(np.flatnonzero(panel.any(axis))) for panel in panels] for axis in (0, 1))
    assert heights[2] == pytest.approx(widths[2], rel=0.05)
    assert heights[0] < 0.9 * widths[0]
    # What was left out does not change what is seen of the rest.
    beside = Poses(assembly.poses.rotation, assembly.poses.translation.clone())
    beside.translation[0] += 5
    objects, sure = torch.tensor((-1, *(0,) * (len(broken_bowl) - 1))), torch.linspace(0, 1, len(broken_bowl))
    near, far = (assembly.with_placements(poses=p, objects=objects, confidence=sure) for p in (assembly.poses, beside))
    assert mesh.draw_views(near).tobytes() == mesh.draw_views(far).tobytes() != picture.tobytes()


def test_clouds_and_broken_meshes_are_drawn_too(broken_bowl: Puzzle) -> None:
    pieces, point = broken_bowl.fragments, Mesh(torch.zeros(3, 3), torch.tensor([[0, 1, 2]]))
    clouds = tuple(Mesh(points, torch.zeros(0, 3, dtype=torch.long)) for points in pieces.points)
    solid, cloud, sick = (
        coloured(mesh.draw_assembly(assembled(replace(broken_bowl, pieces=replace(pieces, meshes=meshes)))))
        for meshes in (pieces.meshes, clouds, (point, *pieces.meshes[1:]))
    )
    assert (solid & cloud).sum() > 0.6 * solid.sum()
    assert sick.mean() > 0.1


@pytest.mark.parametrize("count", [1, 200])
def test_any_number_of_fragments(count: int) -> None:
    truth = Poses(torch.eye(3).repeat(count, 1, 1), 0.3 * torch.randn(count, 3, generator=torch.Generator()))
    assembly = assembled(Puzzle(boxes(count), None, tuple(map(str, range(count))), truth))
    for picture in (mesh.draw_before_after(assembly), *mesh.animate(assembly, frames=2)):
        assert coloured(picture).mean() > 0.002
