"""Reports are whole pages that need no network, with the status of every piece."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import skimage.data
import torch

from diffassemble.assembly.answer import Answer
from diffassemble.core import Board, FragmentPieces, Locks, Mesh, Placements, Poses, Puzzle
from diffassemble.core.poses import random_rotations
from diffassemble.rendering.report import Pictures, account, doubtful, listed, report_html
from diffassemble.squares.cut import cut_picture


def answer() -> Answer:
    picture = torch.from_numpy(skimage.data.coffee()).movedim(-1, 0).float() / 255
    puzzle = cut_picture(picture, Board(2, 3), torch.Generator().manual_seed(0), size=16)
    sure = torch.tensor([0.9, 0.2, 0.8, 1.0, 0.7, 0.6])
    return Answer(puzzle, Placements(puzzle.truth, sure), (puzzle.truth,), "hybrid", 1.25)


def test_it_is_self_contained_and_complete() -> None:
    page = report_html(Pictures(answer()), [("seed", "7")])
    assert page.startswith("<!DOCTYPE html>")
    assert "<figure>" not in page  # no joins of squares
    sources = re.findall(r'src="([^"]+)"', page)
    assert len(sources) == 3
    assert all(source.startswith("data:image/") for source in sources)
    assert not re.search(r"https?://|<script|<link", page)
    for words in ("2x3", "hybrid", "1.2", "seed", "100.0 % of the pieces right", "torch", "How to cite", "Blender"):
        assert words in page
    assert page.index("piece_001.png") < page.index("piece_005.png")


def test_locks_objects_and_extra_pieces_are_shown() -> None:
    given = answer()
    held = torch.arange(6) < 2
    locked = replace(given, puzzle=replace(given.puzzle, locks=Locks(held, given.poses)), extra=("<b>.png",))
    sure = given.confidence.clone()
    sure[5] = 0
    page = report_html(Pictures(locked.with_placements(objects=torch.tensor((0, 1, 1, 0, 0, -1)), confidence=sure)))
    assert "<th>object 2</th>" in page
    assert "<th>unplaced, fits nowhere</th>" in page
    assert "&lt;b&gt;.png" in page
    assert "<th>locked</th><td>2</td>" in page


@pytest.fixture
def mended() -> Answer:
    points = torch.rand(5, 8, 3, generator=torch.Generator().manual_seed(0))
    clouds = tuple(Mesh(own, torch.zeros(0, 3, dtype=torch.long)) for own in points)
    puzzle = Puzzle(FragmentPieces(points, clouds, torch.zeros(5, 3)), None, tuple("abcde"))
    poses = Poses(random_rotations(5, torch.Generator().manual_seed(0)), torch.zeros(5, 3))
    sure = torch.tensor([1.0, 0.95, 0.7, 0.2, 0.0])
    return Answer(puzzle, Placements(poses, sure, objects=torch.tensor((0, 0, 0, 0, -1))), (), "mend", 1.0)


def test_joins_and_sides_of_objects_are_shown(broken_bowl: Puzzle) -> None:
    count = len(broken_bowl)
    sure, names = torch.linspace(0, 1, count), tuple(f"<{number}>" for number in range(count))
    puzzle, objects = replace(broken_bowl, names=names), torch.tensor((-1, *(0,) * (count - 1)))
    notes = ("no break & no rim", *("",) * (count - 1))
    bowl = Answer(puzzle, Placements(puzzle.truth, sure, objects=objects, notes=notes), (), "hybrid", 1.0)
    page = report_html(Pictures(bowl))
    assert "Unplaced fragments are not shown here" in page
    assert "<td>unplaced</td><td>no break &amp; no rim</td>" in page
    captions = re.findall(r"<figcaption><b>&lt;(\d)&gt;</b> \(left\).*?confidence ([\d.]+), (\w+)</figcaption>", page)
    assert captions[0] == ("1", f"{1 / (count - 1):.2f}", "guessed")
    assert [number for number, *_ in captions] == sorted(number for number, *_ in captions)
    assert len(captions) == page.count("<figure>") >= 3
    assert "opened like a book" in page


@pytest.mark.parametrize(
    ("objects", "wanted"),
    [
        (
            (0, 0, 0, 0, -1),
            {"sure": "a, b", "likely": "c (0.70)", "guessed": "d (0.20)", "unplaced, fits nowhere": "e"},
        ),
        # Objects are named where there are several; solvers that leave nothing out say nothing.
        ((0, 1, 1, 0, -1), {"object 1": "a, d", "object 2": "b, c"}),
        (None, {}),
    ],
)
def test_every_piece_is_listed(mended: Answer, objects: tuple[int, ...] | None, wanted: dict[str, str]) -> None:
    answer = mended.with_placements(objects=None if objects is None else torch.tensor(objects))
    assert list(account(answer))[: len(wanted)] == list(wanted.items())
    assert bool(account(answer)) == bool(wanted)


def test_reasons_are_listed_and_long_lists_are_cut(mended: Answer) -> None:
    notes = ("", "", "as sure as b", "fits 2 places", "unplaced: no break found")
    found = dict(account(mended.with_placements(notes=notes)))
    assert found["likely"] == "c (0.70; as sure as b)"
    assert found["guessed"] == "d (0.20; fits 2 places)"
    assert found["unplaced, no break found"] == "e"
    assert listed([str(number) for number in range(14)]).endswith("10, 11 and 2 more")
    assert listed(["a"]) == "a"


def test_doubt_is_listed_only_where_there_is_some(mended: Answer) -> None:
    flat = replace(mended, puzzle=replace(mended.puzzle, lattice=Board(1, len(mended.puzzle))))
    for sure, words in ((0.97, "probability 97 %"), (0.4, "probability 40 %; which way is up is a guess")):
        assert account(flat.with_placements(objects=None, upright=sure)) == [("upright", words)]
    given = answer()
    assert doubtful(given.with_placements(confidence=torch.full((6,), 0.97))) == "<p>All 6 are sure: 0.97 or more.</p>"
    assert "The most doubtful first" in doubtful(given)
