"""Pieces of any outline fill the picture they are cut from, and the truth puts them back."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from skimage import data
from torch import Tensor

from diffassemble.core import InputError, Puzzle
from diffassemble.core.contours import signed_area
from diffassemble.outlines.coverage import coverage
from diffassemble.outlines.cut import SHAPES, cut_shape, cut_shapes, sheet_outlines
from diffassemble.outlines.partition import joined, lattice_shape, tears


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def photo() -> Tensor:
    """A sample picture, 300 × 200."""
    picture = torch.from_numpy(data.coffee()).permute(2, 0, 1).float() / 255
    return torch.nn.functional.interpolate(picture[None], (200, 300), mode="area")[0]


def put_back(puzzle: Puzzle, height: int, width: int) -> tuple[Tensor, Tensor]:
    """The sum of all pieces' alpha at their true places, and of what they show there."""
    assert puzzle.truth is not None
    at = torch.stack(torch.meshgrid(torch.arange(width) + 0.5, torch.arange(height) + 0.5, indexing="xy"), -1)
    total = torch.zeros(4, height, width)
    pieces = puzzle.outlines
    for index, texture in enumerate(pieces.textures):
        rotation, translation = puzzle.truth.rotation[index], puzzle.truth.translation[index]
        inside = (at - translation) @ rotation + pieces.origins[index]
        grid = 2 * inside / torch.tensor([texture.shape[2], texture.shape[1]]) - 1
        levels = texture.float() / 255
        levels = torch.cat([levels[:3] * levels[3:], levels[3:]])
        total += torch.nn.functional.grid_sample(levels[None], grid[None], align_corners=False)[0]
    return total[3], total[:3]


def test_coverage_of_a_triangle_and_of_its_complement() -> None:
    triangle = np.array([[1.3, 0.7], [8.2, 3.1], [2.6, 6.9]])
    share = coverage(triangle, 8, 10)
    assert share.sum() == pytest.approx(signed_area(triangle))
    assert share.min() == pytest.approx(0, abs=1e-12)
    assert share.max() == pytest.approx(1)
    assert share[3, 3] == pytest.approx(1)
    around = np.concatenate([[[0, 0], [10, 0], [10, 8], [0, 8], [0, 0]], triangle[[0, 2, 1, 0]]])
    assert np.abs(share + coverage(around, 8, 10) - 1).max() < 1e-12


def test_coverage_of_half_a_pixel() -> None:
    box = np.array([[1.5, 1.0], [3.25, 1.0], [3.25, 2.0], [1.5, 2.0]])
    assert np.allclose(coverage(box, 3, 5)[1], [0, 0.5, 1, 0.25, 0])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_outlines_fill_the_sheet_and_never_overlap(shape: str, seed: int) -> None:
    width, height = 400, 260
    shares = [
        coverage(outline.edge, height, width) for outline in sheet_outlines(shape, 24, width, height, seeded(seed))
    ]
    assert len(shares) == 24
    assert np.abs(sum(shares) - 1).max() < 1e-9
    # A line that crossed another, or itself, would cover something twice, or less than nothing.
    assert min(share.min() for share in shares) > -1e-6
    assert max(share.max() for share in shares) < 1 + 1e-6


@pytest.mark.parametrize("shape", SHAPES)
def test_the_truth_puts_the_picture_together(shape: str, photo: Tensor) -> None:
    puzzle = cut_shapes(photo, shape, 12, seeded(3), size=60 if shape != "strips" else 25)
    assert len(puzzle) == 12
    scale = math.sqrt(float(puzzle.outlines.areas.sum()) / (300 * 200))
    height, width = round(200 * scale), round(300 * scale)
    alpha, colours = put_back(puzzle, height, width)
    inner = slice(2, -2)
    assert float((alpha - 1).abs()[inner, inner].mean()) < 0.01
    assert float((alpha - 1).abs()[inner, inner].max()) < 0.3
    if shape != "torn":  # whose core is white
        whole = torch.nn.functional.interpolate(photo[None], (height, width), mode="bicubic", antialias=True)[0]
        assert float((colours / alpha.clamp(min=0.5) - whole).abs().mean()) < 0.02


def test_the_core_of_torn_paper_shows(photo: Tensor) -> None:
    dark = torch.zeros_like(photo)
    white = [float((texture[:3].float().mean(0) > 128).float().sum()) for texture in _textures(dark, "torn")]
    assert sum(white) > 0.01 * 300 * 200
    assert min(white) < 0.3 * max(white)
    assert not any(texture[:3].any() for texture in _textures(dark, "tabs"))


def _textures(picture: Tensor, shape: str) -> tuple[Tensor, ...]:
    return cut_shapes(picture, shape, 12, seeded(0)).outlines.textures


def test_nothing_of_the_neighbours_is_left_in_a_piece(photo: Tensor) -> None:
    for texture in _textures(photo, "tabs"):
        assert not texture[:3, texture[3] == 0].any()
        assert not texture[3, [0, -1]].any()
        assert not texture[3, :, [0, -1]].any()


def test_erosion_takes_a_strip_all_around(photo: Tensor) -> None:
    whole, worn = (cut_shapes(photo, "tabs", 12, seeded(5), erode=lost).outlines for lost in (0, 2))
    for before, after, contour in zip(whole.areas, worn.areas, whole.contours, strict=True):
        assert float(before - after) == pytest.approx(2 * len(contour), rel=0.1)


def test_missing_pieces_and_turns(photo: Tensor) -> None:
    puzzle = cut_shapes(photo, "shards", 20, seeded(1), missing=0.25)
    assert (len(puzzle), len(set(puzzle.names))) == (15, 15)
    straight = cut_shapes(photo, "shards", 20, seeded(1), turn=False)
    assert straight.truth is not None
    assert torch.equal(straight.truth.rotation, torch.eye(2).expand(20, 2, 2))
    again = cut_shapes(photo, "shards", 20, seeded(1), missing=0.25)
    assert all(
        torch.equal(one, other) for one, other in zip(puzzle.outlines.textures, again.outlines.textures, strict=True)
    )


def test_listing_order_tells_nothing(photo: Tensor) -> None:
    truth = cut_shapes(photo, "strips", 40, seeded(2), size=12).truth
    assert truth is not None
    order = truth.translation[:, 0].argsort().argsort().float()
    assert abs(float(torch.corrcoef(torch.stack([order, torch.arange(40.0)]))[0, 1])) < 0.4


def test_every_side_of_a_jigsaw_has_a_knob_of_its_own() -> None:
    """Areas of pieces differ by their knobs, which chance has made differently."""
    areas = [signed_area(outline.edge) for outline in sheet_outlines("tabs", 36, 600, 600, seeded(0))]
    assert np.std(areas) > 0.03 * np.mean(areas)


@pytest.mark.parametrize(
    ("count", "width", "height", "shape"),
    [(100, 512, 512, (10, 10)), (500, 600, 400, (20, 25)), (1000, 600, 400, (25, 40)), (12, 300, 200, (3, 4))],
)
def test_lattices_have_as_many_cells_as_asked_for(count: int, width: int, height: int, shape: tuple[int, int]) -> None:
    assert lattice_shape(count, width, height) == shape


def test_lattices_of_prime_numbers_are_near() -> None:
    rows, cols = lattice_shape(97, 300, 200)
    assert abs(rows * cols - 97) <= 3
    assert 1 / 1.4 < (300 / cols) / (200 / rows) < 1.4


def test_cells_know_the_corners_amid_their_sides() -> None:
    corners, rings = joined(tears(15, 300, 200, np.random.default_rng(0)))
    sides = [frozenset(side) for ring in rings for side in zip(ring, ring[1:] + ring[:1], strict=True)]
    on_frame = [
        side
        for side in set(sides)
        if any((corners[list(side), axis] == at).all() for axis, at in ((0, 0), (0, 300), (1, 0), (1, 200)))
    ]
    assert all(sides.count(side) == (1 if side in on_frame else 2) for side in set(sides))


@pytest.mark.parametrize(
    ("shape", "pieces", "options", "says"),
    [
        ("round", 10, {}, "no shape 'round'"),
        ("tabs", 1, {}, "1 pieces make no puzzle"),
        ("tabs", 10, {"missing": 1.0}, "missing share 1.0"),
        ("tabs", 10, {"erode": -1}, "cannot erode -1"),
        ("tabs", 12, {"erode": 60}, "leave nothing of a piece"),
        ("tabs", 12, {"size": 5}, "piece size of 5 pixels is out of range"),
        ("strips", 200, {}, "under 4 pixels"),
    ],
)
def test_what_can_not_be_cut(tmp_path, shape: str, pieces: int, options: dict, says: str, photo: Tensor) -> None:
    from diffassemble.io.pictures import write_picture

    write_picture(photo, tmp_path / "photo.png")
    with pytest.raises(InputError, match=says):
        cut_shape(tmp_path / "photo.png", shape, pieces, **options)
