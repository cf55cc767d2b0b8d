"""Shredded pages: sides made straight, compared, ordered; doubt where nothing runs across."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFont

from diffassemble.core import Locks, OutlinePieces, Poses, Puzzle
from diffassemble.core.contours import outline_pieces
from diffassemble.core.thresholds import SURE
from diffassemble.outlines.cut import cut_shapes
from diffassemble.outlines.grow import GrowSolver, family
from diffassemble.outlines.strip_sides import LEFT, RIGHT, load_strip_model, read_sides, strip_frame
from diffassemble.outlines.strips import balanced, looks_like_strips, match_strips, order_strips

HEIGHT, WIDTH, STRIPS = 640, 400, 10


def written(seed: int) -> torch.Tensor:
    """A page full of letters drawn at random."""
    rng, page = np.random.default_rng(seed), Image.new("RGB", (WIDTH, HEIGHT), (250, 250, 246))
    pen = ImageDraw.Draw(page)
    for y in range(8, HEIGHT - 20, 24):
        pen.text((10, y), "".join(rng.choice(list("abcdefghknopqstuvwxz EHMNORS"), 44)), fill=(30, 30, 30), font=FONT)
    return torch.from_numpy(np.asarray(page).copy()).permute(2, 0, 1) / 255


FONT = ImageFont.load_default(18)


def shredded(page: torch.Tensor, seed: int, **options: object) -> Puzzle:
    return cut_shapes(page, "strips", STRIPS, torch.Generator().manual_seed(seed), **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def puzzle() -> Puzzle:
    return shredded(written(0), 1, erode=1)


@pytest.fixture(scope="module")
def pieces(puzzle: Puzzle) -> OutlinePieces:
    return puzzle.outlines


def in_order(poses: Poses, pieces: OutlinePieces) -> list[int]:
    """Strips from the left, in the frame in which the first listed strip stands upright by its own axis."""
    along = poses.rotation[0] @ torch.from_numpy(strip_frame(pieces.contours[0]).axes).float()[:, 1]
    across = torch.stack([along[1], -along[0]])
    return (poses.translation @ across).argsort().tolist()


def test_frame_of_a_turned_rectangle() -> None:
    corners = np.array([[-10.0, -100], [10, -100], [10, 100], [-10, 100]])
    closed = np.concatenate([corners, corners[:1]])
    dense = np.concatenate([np.linspace(a, b, 200, endpoint=False) for a, b in pairwise(closed)])
    for degrees in (0, 20, -70, 160):
        angle = np.radians(degrees)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        frame = strip_frame(torch.from_numpy(dense @ turn.T))
        assert frame.length == pytest.approx(200, abs=0.5)
        assert frame.reach == pytest.approx((10, 10), abs=0.3)
        assert abs(frame.axes[:, 1] @ turn[:, 1]) == pytest.approx(1, abs=1e-4)
        assert np.linalg.det(frame.axes) == pytest.approx(1)


def test_recognises_strips(pieces: OutlinePieces) -> None:
    assert looks_like_strips(pieces)
    for shape in ("tabs", "shards", "torn"):
        others = cut_shapes(written(0), shape, 9, torch.Generator().manual_seed(0), size=40).outlines
        assert not looks_like_strips(others)


def test_sides_show_the_colours_along_them() -> None:
    texture = torch.zeros(4, 260, 60, dtype=torch.uint8)
    texture[3, 10:250, 10:50] = 255
    texture[:3, :, 30:] = 200  # the right half is bright
    texture[:3, 10:60, 30:] = 90  # but for its upper end
    pieces = outline_pieces([texture])
    sides = read_sides(pieces, [strip_frame(contour) for contour in pieces.contours])
    assert int(sides.lengths[0]) == pytest.approx(240, abs=1)
    right, left = (sides.bands[0, side, 5] - sides.bands[0, LEFT, 5, 100] for side in (RIGHT, LEFT))
    assert right[10:40].mean() == pytest.approx(90 / 255, abs=0.01)
    assert right[60:230].mean() == pytest.approx(200 / 255, abs=0.01)
    assert left[10:230].abs().max() < 0.01
    assert sides.bands[0, :, 14, 5:235].abs().max() < 0.05  # straight borders


def test_comparison_is_symmetric_and_blind_to_turning_the_page(pieces: OutlinePieces) -> None:
    model, frames = load_strip_model(), [strip_frame(contour) for contour in pieces.contours]
    sides = read_sides(pieces, frames)
    compared = model(sides.bands, sides.lengths)
    assert torch.equal(compared.fits, compared.fits.T)
    lengths = sides.lengths.repeat_interleave(2)
    # One placement seen upright and upside down; two shifts may be equally good.
    back = compared.shifts + lengths[None] - lengths[:, None]
    assert (compared.shifts == back.T)[compared.fits > -1e3].float().mean() > 0.95
    turned = model(sides.bands.flip(1), sides.lengths)
    swapped = torch.arange(2 * len(pieces)) ^ 1
    torch.testing.assert_close(turned.fits, compared.fits[swapped][:, swapped], atol=1e-3, rtol=1e-4)
    sums = balanced(compared).sigmoid().sum(1)
    assert (sums < 1.01).all()


def test_page_is_put_in_order(puzzle: Puzzle, pieces: OutlinePieces) -> None:
    assert puzzle.truth is not None
    matches = match_strips(pieces)
    grown = order_strips(pieces, matches, None)
    truth = in_order(puzzle.truth, pieces)
    assert in_order(grown.poses, pieces) in (truth, truth[::-1])
    # Relative poses of neighbours are those of the page but for the pixels lost between them.
    here, there = truth[:-1], truth[1:]
    found = grown.poses[there].inverse() @ grown.poses[here]
    true = puzzle.truth[there].inverse() @ puzzle.truth[here]
    assert (found.translation - true.translation).norm(dim=1).max() < 5
    assert ((found.rotation - true.rotation).abs().amax((1, 2)) < 0.05).all()
    assert (grown.objects == 0).all()
    likely = matches.probability > 0.5
    true = puzzle.truth[matches.second[likely]].inverse() @ puzzle.truth[matches.first[likely]]
    assert int(likely.sum()) >= 4
    assert ((matches.pose[likely].translation - true.translation).norm(dim=1) < 5).float().mean() > 0.7


def test_listing_order_does_not_matter(pieces: OutlinePieces) -> None:
    order = torch.randperm(len(pieces), generator=torch.Generator().manual_seed(3))
    plain, listed = match_strips(pieces), match_strips(pieces[order])

    def chances(matches, names):  # type: ignore[no-untyped-def]
        table = torch.zeros(2 * len(pieces), 2 * len(pieces))
        one = 2 * names[matches.first] + matches.slot // 8
        other = 2 * names[matches.second] + matches.slot % 4 // 2
        table[one, other] = table[other, one] = matches.probability
        return table

    torch.testing.assert_close(chances(plain, torch.arange(len(pieces))), chances(listed, order), atol=1e-4, rtol=1e-3)


def test_empty_paper_is_doubted() -> None:
    blank = shredded(torch.full((3, HEIGHT, WIDTH), 0.95), 2, erode=1).outlines
    # Straight cuts: without waves of the border, which are evidence, too.
    strips = []
    for index in range(6):
        texture = torch.full((4, HEIGHT, 44), 240, dtype=torch.uint8)
        texture[3] = 0
        texture[3, 4:-4, 6 : 36 + index % 2] = 255
        strips.append(texture)
    straight = outline_pieces(strips)
    assert looks_like_strips(blank)
    assert match_strips(straight).probability.max() < 0.5
    grown = order_strips(straight, match_strips(straight), None)
    assert int((grown.confidence >= SURE).sum()) == 1  # the core
    assert sum(note != "" for note in grown.notes) == 6


def test_second_batch_is_shifted(puzzle: Puzzle, pieces: OutlinePieces) -> None:
    assert puzzle.truth is not None
    truth = in_order(puzzle.truth, pieces)
    upright = shredded(written(0), 1, erode=1, turn=False).outlines
    cut = [texture.clone() for texture in upright.textures]
    for strip in truth[5:]:
        cut[strip][3, :40] = 0
    shorter = outline_pieces(cut)
    grown = order_strips(shorter, match_strips(shorter), None)
    assert in_order(grown.poses, shorter) in (truth, truth[::-1])
    # The ends that were not cut off are still level.
    low = torch.stack([(grown.poses[[i]].apply(shorter.contours[i][None])[0, :, 1]).max() for i in truth])
    high = torch.stack([(grown.poses[[i]].apply(shorter.contours[i][None])[0, :, 1]).min() for i in truth])
    assert min(float(low.std()), float(high.std())) < 4


def test_locked_strips_stay_beside_each_other(puzzle: Puzzle, pieces: OutlinePieces) -> None:
    assert puzzle.truth is not None
    matches = match_strips(pieces)
    truth = in_order(puzzle.truth, pieces)
    # Two strips are locked side by side that are no neighbours in the page.
    one, other = truth[0], truth[4]
    match = int(((matches.first == min(one, other)) & (matches.second == max(one, other))).nonzero()[0])
    second = Poses.identity(1, 2)
    first = second @ matches.pose[[match]]
    poses = Poses.identity(len(pieces), 2)
    poses.rotation[matches.first[match]], poses.translation[matches.first[match]] = (
        first.rotation[0],
        first.translation[0],
    )
    held = torch.zeros(len(pieces), dtype=torch.bool)
    held[[one, other]] = True
    grown = order_strips(pieces, matches, Locks(held, poses))
    order = in_order(grown.poses, pieces)
    assert abs(order.index(one) - order.index(other)) == 1
    assert (grown.confidence[held] == 1).all()


def test_two_pages_in_one_bag_become_two_objects(pieces: OutlinePieces) -> None:
    coarse = torch.rand(1, 3, 30, 20, generator=torch.Generator().manual_seed(0))
    picture = torch.nn.functional.interpolate(coarse, (HEIGHT, WIDTH), mode="bicubic")[0].clamp(0, 1)
    second = shredded(picture, 5, erode=1).outlines
    bag = outline_pieces([*pieces.textures, *second.textures])
    grown = order_strips(bag, match_strips(bag), None, several=True)
    for number in range(int(grown.objects.max()) + 1):
        inside = (grown.objects == number).nonzero().flatten() < len(pieces)
        assert inside.all() or not inside.any()
    assert int((grown.objects >= 0).sum()) >= 16
    assert ((grown.objects >= 0) | (grown.confidence == 0)).all()


def test_the_solver_recognises_strips(puzzle: Puzzle, pieces: OutlinePieces) -> None:
    assert puzzle.truth is not None
    assert family(pieces) == "strips"
    *_, last = GrowSolver().steps(puzzle.without_truth(), torch.Generator())
    truth = in_order(puzzle.truth, pieces)
    assert in_order(last.poses, pieces) in (truth, truth[::-1])


def test_single_strip(pieces: OutlinePieces) -> None:
    alone = pieces[torch.tensor([0])]
    for several in (False, True):
        grown = order_strips(alone, match_strips(alone), None, several)
        assert grown.objects.tolist() == [0]
        assert grown.confidence.tolist() == [1.0]
