"""Pieces of any outline fill the picture they are cut from, and the truth puts them back."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from diffassemble.core import InputError
from diffassemble.core.contours import signed_area
from diffassemble.io.pictures import write_picture
from diffassemble.outlines.cut import SHAPES, coverage, cut_shape, cut_shapes
from diffassemble.outlines.partition import joined, lattice_shape, sheet_outlines, tears


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def photo(sample: Tensor) -> Tensor:
    """A sample picture, 300 × 200."""
    return torch.nn.functional.interpolate(sample[None], (200, 300), mode="area")[0]


def test_coverage_is_exact() -> None:
    triangle = np.array([[1.3, 0.7], [8.2, 3.1], [2.6, 6.9]])
    share = coverage(triangle, 8, 10)
    assert share.sum() == pytest.approx(signed_area(triangle))
    assert share.min() == pytest.approx(0, abs=1e-12)
    assert share.max() == pytest.approx(1)
    assert share[3, 3] == pytest.approx(1)
    around = np.concatenate([[[0, 0], [10, 0], [10, 8], [0, 8], [0, 0]], triangle[[0, 2, 1, 0]]])
    assert np.abs(share + coverage(around, 8, 10) - 1).max() < 1e-12
    box = np.array([[1.5, 1.0], [3.25, 1.0], [3.25, 2.0], [1.5, 2.0]])
    assert np.allclose(coverage(box, 3, 5)[1], [0, 0.5, 1, 0.25, 0])


@pytest.mark.parametrize("shape", SHAPES)
def test_outlines_fill_the_sheet_and_never_overlap(shape: str) -> None:
    width, height = 400, 260
    for seed in range(4):
        outlines = sheet_outlines(shape, 24, width, height, seeded(seed))
        shares = np.stack([coverage(outline.edge, height, width) for outline in outlines])
        assert len(shares) == 24
        assert np.abs(shares.sum(0) - 1).max() < 1e-9
        # A line that crossed another, or itself, would cover something twice, or less than nothing.
        assert shares.min() > -1e-6
        assert shares.max() < 1 + 1e-6


@pytest.mark.parametrize("shape", SHAPES)
def test_the_truth_puts_the_picture_together(shape: str, photo: Tensor) -> None:
    puzzle = cut_shapes(photo, shape, 12, seeded(3), size=60 if shape != "strips" else 25)
    pieces, truth = puzzle.outlines, puzzle.truth
    assert (len(puzzle), len(set(puzzle.names))) == (12, 12)
    assert truth is not None
    scale = math.sqrt(float(pieces.areas.sum()) / (300 * 200))
    height, width = round(200 * scale), round(300 * scale)
    at = torch.stack(torch.meshgrid(torch.arange(width) + 0.5, torch.arange(height) + 0.5, indexing="xy"), -1)
    total = torch.zeros(4, height, width)
    for texture, rotation, translation, origin in zip(
        pieces.textures, truth.rotation, truth.translation, pieces.origins, strict=True
    ):
        # Nothing of the neighbours is left in a piece, not even where it is transparent.
        assert not texture[:3, texture[3] == 0].any()
        assert not texture[3, [0, -1]].any()
        assert not texture[3, :, [0, -1]].any()
        inside = (at - translation) @ rotation + origin
        grid = 2 * inside / torch.tensor([texture.shape[2], texture.shape[1]]) - 1
        levels = texture.float() / 255
        levels = torch.cat([levels[:3] * levels[3:], levels[3:]])
        total += torch.nn.functional.grid_sample(levels[None], grid[None], align_corners=False)[0]
    assert float((total[3] - 1).abs()[2:-2, 2:-2].mean()) < 0.01
    assert float((total[3] - 1).abs()[2:-2, 2:-2].max()) < 0.3
    if shape != "torn":  # whose core is white
        whole = torch.nn.functional.interpolate(photo[None], (height, width), mode="bicubic", antialias=True)[0]
        assert float((total[:3] / total[3].clamp(min=0.5) - whole).abs().mean()) < 0.02


def test_the_core_of_torn_paper_shows(photo: Tensor) -> None:
    torn, tabs = (cut_shapes(0 * photo, shape, 12, seeded(0)).outlines.textures for shape in ("torn", "tabs"))
    white = [float((texture[:3].float().mean(0) > 128).float().sum()) for texture in torn]
    assert sum(white) > 0.01 * 300 * 200
    assert min(white) < 0.3 * max(white)
    assert not any(texture[:3].any() for texture in tabs)


def test_erosion_takes_a_strip_all_around(photo: Tensor) -> None:
    whole, worn = (cut_shapes(photo, "tabs", 12, seeded(5), erode=lost).outlines for lost in (0, 2))
    for before, after, contour in zip(whole.areas, worn.areas, whole.contours, strict=True):
        assert float(before - after) == pytest.approx(2 * len(contour), rel=0.1)


def test_missing_pieces_turns_and_seeds(photo: Tensor) -> None:
    puzzle, again = (cut_shapes(photo, "shards", 20, seeded(1), missing=0.25) for _ in range(2))
    assert (len(puzzle), len(set(puzzle.names))) == (15, 15)
    assert all(map(torch.equal, puzzle.outlines.textures, again.outlines.textures))
    straight = cut_shapes(photo, "shards", 20, seeded(1), turn=False)
    assert straight.truth is not None
    assert torch.equal(straight.truth.rotation, torch.eye(2).expand(20, 2, 2))


def test_pieces_are_listed_at_random(photo: Tensor) -> None:
    truth = cut_shapes(photo, "strips", 40, seeded(2), size=12).truth
    assert truth is not None
    order = truth.translation[:, 0].argsort().argsort().float()
    assert abs(float(torch.corrcoef(torch.stack([order, torch.arange(40.0)]))[0, 1])) < 0.4


@pytest.mark.parametrize(
    ("count", "width", "height", "shape"),
    [
        (100, 512, 512, (10, 10)),
        (500, 600, 400, (20, 25)),
        (1000, 600, 400, (25, 40)),
        (12, 300, 200, (3, 4)),
        (97, 300, 200, (8, 12)),
    ],
)
def test_lattices_have_about_as_many_cells_as_asked_for(
    count: int, width: int, height: int, shape: tuple[int, int]
) -> None:
    assert lattice_shape(count, width, height) == shape


def test_cells_know_the_corners_amid_their_sides() -> None:
    corners, rings = joined(tears(15, 300, 200, np.random.default_rng(0)))
    sides = [frozenset(side) for ring in rings for side in zip(ring, ring[1:] + ring[:1], strict=True)]
    for side in set(sides):
        ends = corners[list(side)]
        on_frame = any((ends[:, axis] == at).all() for axis, at in ((0, 0), (0, 300), (1, 0), (1, 200)))
        assert sides.count(side) == (1 if on_frame else 2)


@pytest.mark.parametrize(
    ("shape", "pieces", "options", "message"),
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
def test_what_can_not_be_cut(
    tmp_path: Path, shape: str, pieces: int, options: dict, message: str, photo: Tensor
) -> None:
    write_picture(photo, tmp_path / "photo.png")
    with pytest.raises(InputError, match=message):
        cut_shape(tmp_path / "photo.png", shape, pieces, **options)
