"""Two puzzles in one box: told apart, each put together by itself, and laid beside each other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from PIL import Image
from skimage import data

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.assembly.scoring import right_outlines
from diffassemble.core import Locks, OutlinePieces, Poses, Puzzle
from diffassemble.io.puzzles import write_puzzle
from diffassemble.outlines.cut import cut_shapes
from diffassemble.outlines.grow import GrowSolver


def cut(picture: str, shape: str, pieces: int, seed: int, size: int = 80) -> Puzzle:
    image = torch.from_numpy(getattr(data, picture)()).movedim(-1, 0).float() / 255
    return cut_shapes(image, shape, pieces, torch.Generator().manual_seed(seed), size=size)


def in_one_box(one: Puzzle, two: Puzzle) -> Puzzle:
    """The pieces of both, those of the first listed first, without a truth."""
    mine, other = one.outlines, two.outlines
    textures, contours = mine.textures + other.textures, mine.contours + other.contours
    pieces = OutlinePieces(textures, contours, torch.cat([mine.origins, other.origins]))
    return Puzzle(pieces, None, tuple(f"piece_{number:03d}.png" for number in range(len(pieces))))


BOXES: dict[str, tuple[tuple[str, int, int], tuple[str, int, int]]] = {
    "two jigsaws": (("tabs", 20, 80), ("tabs", 12, 80)),
    "two jigsaws of other sizes": (("tabs", 20, 80), ("tabs", 12, 110)),
    "two broken pictures": (("shards", 9, 100), ("shards", 7, 100)),
    "a jigsaw and a broken picture": (("tabs", 12, 80), ("shards", 8, 100)),
}


@pytest.fixture(scope="module", params=BOXES)
def box(request: pytest.FixtureRequest) -> tuple[Puzzle, Puzzle, Answer]:
    (one, many, size), (two, few, wide) = BOXES[request.param]
    first, second = cut("coffee", one, many, 1, size), cut("chelsea", two, few, 2, wide)
    return first, second, assemble(in_one_box(first, second), GrowSolver(several=True))


def test_each_is_put_together_by_itself(box: tuple[Puzzle, Puzzle, Answer]) -> None:
    first, second, assembly = box
    assert assembly.objects is not None
    numbers = assembly.objects
    begin = 0
    told = set()
    for puzzle in (first, second):
        own = slice(begin, begin + len(puzzle))
        begin += len(puzzle)
        assert puzzle.truth is not None
        assert len(set(numbers[own].tolist())) == 1
        assert bool(
            right_outlines(puzzle.outlines, assembly.poses[torch.arange(len(numbers))[own]], puzzle.truth).all()
        )
        told |= set(numbers[own].tolist())
    assert told == {0, 1}


def test_strips_among_jigsaw_pieces_are_put_in_order_by_themselves() -> None:
    """Where a strip's neighbour is not known, its page falls into parts; none holds a jigsaw piece."""
    first, second = cut("coffee", "tabs", 12, 1), cut("chelsea", "strips", 9, 2, 30)
    assembly = assemble(in_one_box(first, second), GrowSolver(several=True))
    assert assembly.objects is not None
    assert set(assembly.objects[:12].tolist()) == {0}
    assert min(assembly.objects[12:].tolist()) > 0


def test_they_lie_beside_each_other(box: tuple[Puzzle, Puzzle, Answer]) -> None:
    assembly = box[2]
    moved = [
        contour @ turn.T + place
        for contour, turn, place in zip(
            assembly.puzzle.outlines.contours, assembly.poses.rotation, assembly.poses.translation, strict=True
        )
    ]
    bounds = []
    for number in (0, 1):
        points = torch.cat(
            [own for own, mine in zip(moved, assembly.placements.numbers.tolist(), strict=True) if mine == number]
        )
        bounds.append((points.amin(0), points.amax(0)))
    (low, high), (other_low, other_high) = bounds
    assert bool(((high < other_low) | (other_high < low)).any())


def test_what_is_locked_stays_in_a_mixed_box() -> None:
    first, second = cut("coffee", "tabs", 12, 1), cut("chelsea", "shards", 8, 2, 100)
    puzzle = in_one_box(first, second)
    assert first.truth is not None
    held = torch.arange(len(puzzle)) < 3
    poses = Poses.identity(len(puzzle), 2)
    poses.rotation[:12], poses.translation[:12] = first.truth.rotation, first.truth.translation + 1000
    locked = Puzzle(puzzle.pieces, None, puzzle.names, locks=Locks(held, poses))
    assembly = assemble(locked, GrowSolver(several=True))
    assert (assembly.poses.translation[:12] - poses.translation[:12]).norm(dim=1).max() < 4
    assert assembly.objects is not None
    assert set(assembly.objects[:12].tolist()) == {0}
    assert set(assembly.objects[12:].tolist()) == {1}


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "diffassemble", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def test_the_command_tells_puzzles_apart(lay: Callable[..., Image.Image], tmp_path: Path) -> None:
    one, two = cut("coffee", "tabs", 20, 1), cut("chelsea", "tabs", 12, 2)
    box = in_one_box(one, two)
    lay(box).save(tmp_path / "box.png")
    told = run("solve", "box.png", "--objects", "auto", "--no-pictures", "--out", "photo", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    write_puzzle(box, tmp_path / "folder")
    again = run("solve", "folder", "--objects", "auto", "--no-pictures", "--out", "answer", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    for folder, said in (("photo", told.stdout), ("answer", again.stdout)):
        assert "grid found in object 2" in said
        document = json.loads((tmp_path / folder / "assembly.json").read_bytes())
        numbers = [piece["object"] for piece in document["pieces"]]
        assert numbers == [0] * 20 + [1] * 12
