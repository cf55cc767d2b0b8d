"""Pictures of broken objects, of any kind and number."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from diffassemble.core import Assembly, FragmentPieces, Mesh, Poses, Puzzle
from diffassemble.rendering import mesh
from diffassemble.rendering.animation import encode_gif
from diffassemble.rendering.mesh import animate, draw_assembly, draw_before_after, draw_confidence
from diffassemble.rendering.picture import confidence_colour


@pytest.fixture(autouse=True)
def small_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half as wide as usual, for speed."""
    monkeypatch.setattr(mesh, "PICTURE", (480, 420))
    monkeypatch.setattr(mesh, "PANEL", (240, 210))


def assembled(puzzle: Puzzle, history: tuple[Poses, ...] = ()) -> Assembly:
    assert puzzle.truth is not None
    return Assembly(puzzle, puzzle.truth, torch.linspace(0, 1, len(puzzle)), history, "oracle", 0.1)


def coloured(picture: Image.Image) -> np.ndarray:
    """Where things are: the table, its shadows and the contours have no colour."""
    levels = np.asarray(picture).astype(int)
    return levels.max(-1) - levels.min(-1) > 18


def clouds(puzzle: Puzzle) -> Puzzle:
    none = torch.zeros(0, 3, dtype=torch.long)
    pieces = puzzle.fragments
    return replace(puzzle, pieces=replace(pieces, meshes=tuple(Mesh(points, none) for points in pieces.points)))


def chips(count: int) -> Puzzle:
    """Tetrahedra in a heap."""
    generator = torch.Generator().manual_seed(0)
    corners = torch.randn(count, 4, 3, generator=generator) * 0.03
    faces = torch.tensor([[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]])
    pieces = FragmentPieces(corners, tuple(Mesh(four, faces) for four in corners), torch.zeros(count, 3))
    truth = Poses(torch.eye(3).repeat(count, 1, 1), 0.3 * torch.randn(count, 3, generator=generator))
    return Puzzle(pieces, None, tuple(str(i) for i in range(count)), truth)


def test_the_last_frame_shows_what_the_picture_shows(broken_bowl: Puzzle) -> None:
    history = tuple(Poses(broken_bowl.truth.rotation, broken_bowl.truth.translation * s) for s in (3.0, 2.0, 1.0))
    assembly = assembled(broken_bowl, history)
    still = draw_assembly(assembly)
    frames = animate(assembly, frames=3)
    assert len(frames) == 3
    assert len({frame.size for frame in frames}) == 1
    last = coloured(frames[-1])
    expected = coloured(still.resize(frames[-1].size, Image.Resampling.BOX))
    assert 0.1 < last.mean() < 0.8
    assert (last != expected).mean() < 0.02
    assert (coloured(frames[0]) != expected).mean() > 0.05


def test_the_object_fills_the_picture_and_is_not_cut(broken_bowl: Puzzle) -> None:
    rows, columns = np.nonzero(coloured(draw_assembly(assembled(broken_bowl))))
    assert columns.min() > 25
    assert columns.max() < 480 - 25
    assert columns.max() - columns.min() > 350
    assert rows.min() > 25


def test_the_same_bytes_every_time(broken_bowl: Puzzle) -> None:
    assembly = assembled(broken_bowl)
    first, second = (encode_gif(animate(assembly, frames=2)) for _ in range(2))
    assert first == second
    assert Image.open(io.BytesIO(first)).size == (480, 420)


def test_the_truth_is_shown_only_if_it_is_known(broken_bowl: Puzzle) -> None:
    assembly = assembled(broken_bowl)
    known, unknown = (
        draw_before_after(assembly),
        draw_before_after(replace(assembly, puzzle=broken_bowl.without_truth())),
    )
    assert known.width > unknown.width + 200
    assert known.height == unknown.height
    panel = np.asarray(unknown)[:, 20:-20]
    assert np.array_equal(np.asarray(known)[:, 20 : 20 + panel.shape[1]], panel)


def test_confidence_colours_the_fragments(broken_bowl: Puzzle) -> None:
    for sure in (0.0, 1.0):
        assembly = replace(assembled(broken_bowl), confidence=torch.full((len(broken_bowl),), sure))
        picture = draw_confidence(assembly)
        object_ = np.asarray(picture)[20:430][coloured(picture)[20:430]].astype(float).mean(0)
        assert np.argmax(object_) == np.argmax(confidence_colour(sure))


def test_clouds_look_like_the_meshes_they_come_from(broken_bowl: Puzzle) -> None:
    solid, cloud = (coloured(draw_assembly(assembled(puzzle))) for puzzle in (broken_bowl, clouds(broken_bowl)))
    assert (solid & cloud).sum() > 0.6 * solid.sum()


@pytest.mark.parametrize("count", [1, 200])
def test_any_number_of_fragments(count: int) -> None:
    assembly = assembled(chips(count))
    for picture in (draw_before_after(assembly), *animate(assembly, frames=2)):
        assert coloured(picture).mean() > 0.002


def test_a_fragment_without_surface_does_no_harm(broken_bowl: Puzzle) -> None:
    pieces = broken_bowl.fragments
    point = Mesh(torch.zeros(3, 3), torch.tensor([[0, 1, 2]]))
    puzzle = replace(broken_bowl, pieces=replace(pieces, meshes=(point, *pieces.meshes[1:])))
    assert coloured(draw_assembly(assembled(puzzle))).mean() > 0.1
