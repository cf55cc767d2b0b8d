"""Jigsaw pieces put together: whole, with pieces missing, foreign or locked, photographed, of several puzzles in one
box; and wholes turned upright by what they show."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from skimage import data

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.assembly.scoring import right_outlines
from diffassemble.core import InputError, Locks, OutlinePieces, Poses, Puzzle
from diffassemble.core.poses import plane_rotations
from diffassemble.core.thresholds import LIKELY, SURE
from diffassemble.io.assemblies import assembly_bytes, read_assembly
from diffassemble.io.photo.outlines import read_photos
from diffassemble.io.puzzles import write_puzzle
from diffassemble.outlines.cut import cut_shapes
from diffassemble.outlines.grow import GrowSolver
from diffassemble.rendering.flat import draw_assembly, picture_of
from diffassemble.rendering.report import account


def right(assembly: Answer) -> torch.Tensor:
    assert assembly.puzzle.truth is not None
    return right_outlines(assembly.puzzle.outlines, assembly.poses, assembly.puzzle.truth)


def cut(picture: str, shape: str, pieces: int, seed: int, size: int = 80) -> Puzzle:
    image = torch.from_numpy(getattr(data, picture)()).movedim(-1, 0).float() / 255
    return cut_shapes(image, shape, pieces, torch.Generator().manual_seed(seed), size=size)


def in_one_box(one: Puzzle, two: Puzzle) -> Puzzle:
    """The pieces of both, those of the first listed first, without a truth."""
    mine, other = one.outlines, two.outlines
    textures, contours = mine.textures + other.textures, mine.contours + other.contours
    pieces = OutlinePieces(textures, contours, torch.cat([mine.origins, other.origins]))
    return Puzzle(pieces, None, tuple(f"piece_{number:03d}.png" for number in range(len(pieces))))


def check_cells(assembly: Answer) -> None:
    """Rows run down and columns to the right where the pieces are, each cell is taken once."""
    assert assembly.cells is not None
    for cells, places in zip(assembly.cells.T.float(), assembly.poses.translation.T.flip(0), strict=True):
        pitch = (places.max() - places.min()) / cells.max()
        assert ((places - places.min()) / pitch - cells).abs().max() < 0.4
    assert len({tuple(cell) for cell in assembly.cells.tolist()}) == len(assembly.puzzle)


@pytest.fixture(scope="module")
def solved(jigsaw: Puzzle) -> Answer:
    return assemble(jigsaw, GrowSolver())


def test_a_jigsaw_is_put_together(solved: Answer) -> None:
    assert bool(right(solved).all())
    assert solved.placements.numbers.tolist() == [0] * 20
    assert bool((solved.confidence >= SURE).all())
    # Seen from the whole, no piece is further from its true place than two pixels.
    truth = solved.puzzle.truth
    assert truth is not None
    turn = (truth @ solved.poses.inverse()).rotation.mean(0)
    apart = truth.translation - solved.poses.translation @ turn.T
    assert (apart - apart.mean(0)).norm(dim=1).max() < 2


def test_the_steps_show_the_growth(solved: Answer) -> None:
    last = solved.history[-1]
    there = [int((poses.translation == last.translation).all(1).sum()) for poses in solved.history]
    assert there == sorted(there)
    assert there[0] < 5
    assert there[-1] == 20


def test_shapes_alone_are_enough(jigsaw: Puzzle) -> None:
    assembly = assemble(replace(jigsaw, pieces=replace(jigsaw.outlines, coloured=False)), GrowSolver())
    assert bool(right(assembly).all())


def test_pieces_may_be_missing(jigsaw: Puzzle) -> None:
    kept = torch.tensor([piece for piece in range(20) if piece not in (3, 11, 17)])
    assembly = assemble(jigsaw.reordered(kept), GrowSolver())
    assert bool(right(assembly)[assembly.confidence >= SURE].all())
    assert int(right(assembly).sum()) >= 16


def test_foreign_pieces_are_unplaced(jigsaw: Puzzle) -> None:
    foreign = cut("astronaut", "tabs", 20, 9, 60).reordered(torch.tensor([0, 7, 13]))
    assembly = assemble(in_one_box(jigsaw, foreign), GrowSolver())
    assert assembly.objects is not None
    assert assembly.objects.tolist() == [0] * 20 + [-1] * 3
    assert bool((assembly.confidence[20:] == 0).all())
    assert assembly.notes is not None
    assert [note.split(": ")[0] for note in assembly.notes[20:]] == ["unplaced"] * 3
    last = json.loads(assembly_bytes(assembly))["pieces"][-1]
    assert (last["object"], last["row"], last["col"]) == (None, None, None)


@pytest.mark.parametrize("count", [1, 4])
def test_locked_pieces_stay_and_the_rest_grows_around_them(jigsaw: Puzzle, count: int) -> None:
    truth = jigsaw.truth
    assert truth is not None
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    goal = Poses(turn @ truth.rotation, truth.translation @ turn.T + torch.tensor([500.0, -300.0]))
    held = torch.arange(20) < count
    assembly = assemble(replace(jigsaw, locks=Locks(held, goal)), GrowSolver())
    assert torch.equal(assembly.poses.translation[held], goal.translation[held])
    assert (assembly.poses.translation - goal.translation).norm(dim=1).max() < 3
    assert torch.equal(assembly.placements.by_person, held)


def test_the_order_of_the_pieces_changes_nothing(jigsaw: Puzzle, solved: Answer) -> None:
    order = torch.randperm(20, generator=torch.Generator().manual_seed(1))
    again = assemble(jigsaw.reordered(order), GrowSolver())
    assert torch.equal(again.poses.translation, solved.poses.translation[order])
    assert torch.equal(again.confidence, solved.confidence[order])


def test_one_piece_is_an_answer(jigsaw: Puzzle) -> None:
    assembly = assemble(jigsaw.reordered(torch.tensor([2])), GrowSolver())
    assert len(assembly.poses) == 1
    assert assembly.poses.translation.isfinite().all()


def test_rows_and_columns_turn_with_the_whole_and_are_written_and_read(solved: Answer, tmp_path: Path) -> None:
    assert solved.grids in ({0: (4, 5)}, {0: (5, 4)})
    for degrees in (0, 90, 180, 270):
        turned = solved.turned(degrees)
        check_cells(turned)
        again = turned.turned(360 - degrees)
        assert again.cells is not None
        assert torch.equal(again.cells, solved.cells)
    document = tmp_path / "assembly.json"
    document.write_bytes(assembly_bytes(solved))
    written = json.loads(document.read_bytes())
    assert sorted((written["rows"], written["cols"])) == [4, 5]
    back = read_assembly(document, solved.puzzle)
    assert back.cells is not None
    assert torch.equal(back.cells, solved.cells)
    assert assembly_bytes(back) == document.read_bytes()
    assert {(piece["row"], piece["col"]) for piece in written["pieces"]} == {
        tuple(cell) for cell in back.cells.tolist()
    }
    for row in ("1", 1.5, -1, True):
        written["pieces"][0]["row"] = row
        document.write_text(json.dumps(written))
        with pytest.raises(InputError, match="'row' and 'col' must both be"):
            read_assembly(document, solved.puzzle)


BOXES: dict[str, tuple[tuple[str, int, int], tuple[str, int, int]]] = {
    "two jigsaws": (("tabs", 20, 80), ("tabs", 12, 80)),
    "two jigsaws of other sizes": (("tabs", 20, 80), ("tabs", 12, 110)),
    "two broken pictures": (("shards", 9, 100), ("shards", 7, 100)),
    "a jigsaw and a broken picture": (("tabs", 12, 80), ("shards", 8, 100)),
}


@pytest.mark.parametrize("name", BOXES)
def test_puzzles_in_one_box_are_put_together_separately(name: str) -> None:
    (one, many, size), (two, few, wide) = BOXES[name]
    puzzles = cut("coffee", one, many, 1, size), cut("chelsea", two, few, 2, wide)
    box = in_one_box(*puzzles)
    assembly = assemble(box, GrowSolver(several=True))
    bounds, begin, outlines = {}, 0, box.outlines.placed_contours(assembly.poses)
    for puzzle in puzzles:
        own = torch.arange(begin, begin + len(puzzle))
        begin += len(puzzle)
        (number,) = set(assembly.placements.numbers[own].tolist())
        assert puzzle.truth is not None
        assert bool(right_outlines(puzzle.outlines, assembly.poses[own], puzzle.truth).all())
        points = np.concatenate([outlines[piece] for piece in own.tolist()])
        bounds[number] = points.min(0), points.max(0)
    assert set(bounds) == {0, 1}
    (low, high), (other_low, other_high) = bounds.values()
    assert bool(((high < other_low) | (other_high < low)).any())
    if name == "two jigsaws":  # expecting one, the place of the second beside the first is a guess
        alone = assemble(box, GrowSolver())
        assert alone.objects is not None
        assert bool((alone.confidence[alone.objects == 1] < LIKELY).all())


def test_strips_and_locked_pieces_in_a_mixed_box() -> None:
    """Where a strip's neighbour is not known, its page falls into parts; none has a jigsaw piece."""
    first = cut("coffee", "tabs", 12, 1)
    puzzle = in_one_box(first, cut("chelsea", "strips", 9, 2, 30))
    assert first.truth is not None
    poses = Poses.identity(len(puzzle), 2)
    poses.rotation[:12], poses.translation[:12] = first.truth.rotation, first.truth.translation + 1000
    held = torch.arange(len(puzzle)) < 3
    for locks in (None, Locks(held, poses)):
        assembly = assemble(replace(puzzle, locks=locks), GrowSolver(several=True))
        assert assembly.objects is not None
        assert set(assembly.objects[:12].tolist()) == {0}
        assert min(assembly.objects[12:].tolist()) > 0
    assert (assembly.poses.translation[:12] - poses.translation[:12]).norm(dim=1).max() < 4


def test_commands_find_rows_and_columns_of_all_puzzles(
    lay: Callable[..., Image.Image], command: Callable, tmp_path: Path
) -> None:
    box = in_one_box(cut("coffee", "tabs", 20, 1), cut("chelsea", "tabs", 12, 2))
    lay(box).save(tmp_path / "box.png")
    write_puzzle(box, tmp_path / "folder")
    for source in ("box.png", "folder"):
        out = tmp_path / f"{source}-answer"
        found = command("solve", tmp_path / source, "--objects", "auto", "--no-pictures", "--out", out)
        assert found.code == 0, found.err
        assert "grid found in object 2" in found.out
        numbers = [piece["object"] for piece in json.loads((out / "assembly.json").read_bytes())["pieces"]]
        assert numbers == [0] * 20 + [1] * 12
    assert np.asarray(Image.open(tmp_path / "box.png-answer-found.png")).shape[0] > 200


@pytest.mark.parametrize("size", [60, pytest.param(3000, marks=pytest.mark.slow)])
def test_photographed_pieces_of_any_size(size: int, lay: Callable[..., Image.Image], tmp_path: Path) -> None:
    puzzle = cut("coffee", "tabs", 12 if size < 1000 else 4, 3, size)
    singly = [lay(puzzle.reordered(torch.tensor([piece]))) for piece in range(len(puzzle))] if size > 1000 else []
    paths = []
    for number, photo in enumerate(singly or [lay(puzzle)]):
        paths.append(tmp_path / f"photo_{number}.bmp")
        photo.save(paths[-1])
    found, _ = read_photos(paths)
    assert isinstance(found, Puzzle)
    assembly = assemble(replace(found, truth=puzzle.truth), GrowSolver())
    assert bool(right(assembly).all())
    assert sorted(assembly.grids[0]) == ([3, 4] if size < 1000 else [2, 2])


def lighter_above(pieces: OutlinePieces, poses: Poses, chosen: np.ndarray) -> tuple[int, float]:
    """In place of the network: pictures are upright if they are lighter above than below."""
    picture = picture_of(pieces, poses, chosen)
    worth = []
    for turn in range(4):
        seen = torch.rot90(picture, -turn, (-2, -1)).nan_to_num(0.5).mean((0, 2))
        half = len(seen) // 2
        worth.append(float(seen[:half].mean() - seen[half:].mean()))
    chances = (40 * torch.tensor(worth)).softmax(0)
    return int(chances.argmax()), float(chances.max())


@pytest.mark.parametrize("shape", ["tabs", "shards"])
def test_wholes_are_turned_upright(shape: str, tmp_path: Path) -> None:
    # Light above, dark below, with blots by which pieces differ.
    random = np.random.default_rng(1)
    gradient = np.linspace(0.95, 0.25, 240)[None, :, None] * np.ones((3, 240, 320))
    for _ in range(120):
        x, y, size = random.integers(0, 300), random.integers(0, 220), random.integers(6, 20)
        gradient[:, y : y + size, x : x + size] *= random.uniform(0.75, 1.0, (3, 1, 1))
    puzzle = cut_shapes(torch.from_numpy(gradient).float(), shape, 12, torch.Generator().manual_seed(3), size=80)
    solved = assemble(puzzle, GrowSolver(upright=lighter_above))
    assert puzzle.truth is not None
    slant = solved.poses.rotation.double() @ puzzle.truth.rotation.double().mT
    assert float(torch.atan2(slant[:, 1, 0], slant[:, 0, 0]).abs().median()) < math.radians(2)
    picture = np.asarray(draw_assembly(solved).convert("L"), float)
    third = len(picture) // 3
    assert picture[:third].mean() > picture[-third:].mean() + 30
    assert solved.upright is not None
    assert solved.upright >= SURE
    if shape == "tabs":
        check_cells(solved)
    (tmp_path / "assembly.json").write_bytes(assembly_bytes(solved))
    assert json.loads((tmp_path / "assembly.json").read_bytes())["upright"] == {"probability": solved.upright}
    assert read_assembly(tmp_path, solved.puzzle).upright == solved.upright
    assert dict(account(solved))["upright"].startswith("probability ")


def test_silhouettes_and_locked_pieces_are_not_turned_upright(jigsaw: Puzzle) -> None:
    solver = GrowSolver(upright=lighter_above)
    assert assemble(replace(jigsaw, pieces=replace(jigsaw.outlines, coloured=False)), solver).upright is None
    assert jigsaw.truth is not None
    turn = plane_rotations(torch.tensor([math.pi]))[0]
    goal = replace(jigsaw.truth, rotation=turn @ jigsaw.truth.rotation, translation=jigsaw.truth.translation @ turn.T)
    locked = assemble(replace(jigsaw, locks=Locks(torch.arange(20) < 3, goal)), solver)
    assert locked.upright is None
    assert torch.equal(locked.poses.translation[:3], goal.translation[:3])
