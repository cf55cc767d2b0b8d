"""Scores of flat pieces against closed forms and chance; recorded layouts are read as their tables say."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor

from diffassemble.assembly.scoring import outline_errors, right_outlines
from diffassemble.core import InputError, Placements, Poses, Puzzle
from diffassemble.core.contours import outline_pieces
from diffassemble.core.poses import plane_rotations
from diffassemble.core.solver import ChanceSolver
from diffassemble.evaluation.metrics import right_pairs
from diffassemble.evaluation.outlines import (
    CutFromPictures,
    OutlineCell,
    Recorded,
    find_recorded,
    ordered_strips,
    overlap_share,
    read_recorded,
    score_outlines,
    true_neighbours,
)
from diffassemble.evaluation.report import results_table
from diffassemble.evaluation.sweep import Draws, Sweep, run_sweep
from diffassemble.io.pictures import write_picture
from diffassemble.io.puzzles import write_puzzle
from diffassemble.outlines.cut import cut_shapes


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def made(shape: str = "tabs", pieces: int = 12, **options: int) -> Puzzle:
    picture = torch.rand(3, 120, 160, generator=seeded(0))
    return cut_shapes(picture, shape, pieces, seeded(0), **{"size": 40, **options})


def whole(count: int, angle: float, x: float, y: float) -> Poses:
    """One motion for all pieces."""
    return Poses(plane_rotations(torch.full((count,), angle)), torch.tensor([[x, y]]).expand(count, 2))


def unsure(poses: Poses) -> Placements:
    return Placements(poses, torch.zeros(len(poses)))


def truth_of(puzzle: Puzzle) -> Poses:
    assert puzzle.truth is not None
    return puzzle.truth


@pytest.mark.parametrize("shape", ["tabs", "torn", "strips"])
def test_the_truth_is_all_right_however_the_whole_stands(shape: str) -> None:
    puzzle = made(shape)
    answer = whole(12, 1.1, -300.0, 40.0) @ truth_of(puzzle)
    score = score_outlines(puzzle, "free", Placements(answer, torch.ones(12)), 0.5)
    assert [score[name] for name in ("accuracy", "neighbours", "unplaced")] == [100, 100, 0]
    assert (score.sure, score.sure_right) == (12, 12)
    assert max(score["position_error"], score["rotation_error"]) < 0.01
    assert score["overlap"] < 1.5


def test_errors_are_those_that_were_made() -> None:
    puzzle = made()
    truth = truth_of(puzzle)
    width = float(puzzle.outlines.widths[0])
    for share, degrees, right in ((0.2, 0.0, True), (0.3, 0.0, False), (0.0, 4.0, True), (0.0, 6.0, False)):
        turn, shift = truth.rotation.clone(), truth.translation.clone()
        shift[0, 0] += share * width
        turn[0] = plane_rotations(torch.tensor([math.radians(degrees)]))[0] @ turn[0]
        answer = whole(12, -0.4, 5.0, 6.0) @ Poses(turn, shift)
        errors = outline_errors(puzzle.outlines, answer, truth)
        assert errors.right.tolist() == [right, *[True] * 11]
        if not right:  # then the others alone tell how the whole stands
            assert float(errors.apart[0]) == pytest.approx(share * width, abs=0.05)
            assert float(errors.degrees[0]) == pytest.approx(degrees, abs=0.05)
            assert float(errors.apart[1:].max()) < 0.01


def test_most_pieces_decide_how_the_whole_stands() -> None:
    puzzle = made()
    truth = truth_of(puzzle)
    moved = torch.arange(12) < 5
    away = whole(12, 2.0, 500.0, 0.0) @ truth
    rotation = torch.cat([away.rotation[moved], truth.rotation[~moved]])
    answer = Poses(rotation, torch.cat([away.translation[moved], truth.translation[~moved]]))
    assert torch.equal(right_outlines(puzzle.outlines, answer, truth), ~moved)
    # Pairs within either part still stand to each other as they should.
    pairs = true_neighbours(puzzle.outlines, truth, "free")
    together = moved[pairs[:, 0]] == moved[pairs[:, 1]]
    assert torch.equal(right_pairs(puzzle.outlines, answer, truth, pairs), together)


def test_what_is_unplaced_is_wrong_but_has_no_error() -> None:
    puzzle = made()
    truth, objects = truth_of(puzzle), torch.zeros(12, dtype=torch.long)
    objects[:3] = -1
    shift = truth.translation.clone()
    shift[:3] += 1000
    answer = Placements(Poses(truth.rotation, shift), torch.zeros(12), objects)
    score = score_outlines(puzzle, "free", answer, 0.0)
    assert (score["accuracy"], score["unplaced"]) == (75, 3)
    assert score["position_error"] < 0.01
    pairs = true_neighbours(puzzle.outlines, truth, "free")
    assert score["neighbours"] == pytest.approx(100 * float((pairs > 2).all(1).double().mean()))


def test_overlap_of_boxes() -> None:
    boxes = outline_pieces([torch.full((4, 40, 40), 255, dtype=torch.uint8)] * 2)
    every = torch.ones(2, dtype=torch.bool)
    for apart, share in ((40.0, 0.0), (30.0, 0.125), (0.0, 0.5), (1000.0, 0.0)):
        poses = Poses(torch.eye(2).repeat(2, 1, 1), torch.tensor([[0.0, 0.0], [apart, 0.0]]))
        assert overlap_share(boxes, poses, every) == pytest.approx(share, abs=0.015)
    assert overlap_share(boxes, poses, ~every) == 0


def test_strips_are_looked_at_as_an_order() -> None:
    puzzle = made("strips", 8, size=20)
    truth = truth_of(puzzle)
    order = truth.translation[:, 0].argsort().argsort()
    known = replace(puzzle, truth=Poses(truth.rotation, torch.stack([20.0 * order, torch.zeros(8)], 1)))
    # Shifted along, gaping, and with the whole upside down: the order is right.
    gaping = truth.translation * torch.tensor([1.2, 1.0]) + torch.tensor([0.0, 1.0]) * torch.randn(8, 1) * 30
    answer = whole(8, math.pi, 7.0, 7.0) @ Poses(truth.rotation, gaping)
    score = score_outlines(known, "strips", unsure(answer), 0.0)
    assert (score["accuracy"], score["neighbours"]) == (100, 100)
    swapped = gaping.clone()
    first, second = order.tolist().index(3), order.tolist().index(4)
    swapped[[first, second]] = swapped[[second, first]]
    score = score_outlines(known, "strips", unsure(Poses(truth.rotation, swapped)), 0.0)
    assert score["accuracy"] == 75
    assert score["neighbours"] == pytest.approx(100 * 4 / 7)
    turned = torch.where((order < 2)[:, None, None], -truth.rotation, truth.rotation)
    assert score_outlines(known, "strips", unsure(Poses(turned, gaping)), 0.0)["accuracy"] == 75
    placed = torch.tensor([True] * 7 + [False])
    assert ordered_strips(answer, truth, placed, 20.0).translation[7].norm() > 10_000


def test_lattices_take_their_steps_from_the_answer() -> None:
    puzzle = made(pieces=20)
    truth = truth_of(puzzle)
    cells = (truth.translation / 40).floor()
    known = replace(puzzle, truth=Poses(truth.rotation, cells * float(puzzle.outlines.areas.sqrt().mean())))
    stretched = Poses(truth.rotation, 40 * cells * torch.tensor([1.12, 0.93]))
    score = score_outlines(known, "lattice", unsure(whole(20, 0.3, 1.0, 2.0) @ stretched), 0.0)
    assert (score["accuracy"], score["neighbours"]) == (100, 100)
    swapped = truth.translation[[1, 0, *range(2, 20)]]
    score = score_outlines(known, "lattice", unsure(Poses(truth.rotation, swapped)), 0.0)
    assert score["accuracy"] <= 90


def table(folder: Path, rows: list[dict[str, object]], name: str = "truth.csv") -> None:
    with (folder / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def save(texture: Tensor, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    Image.fromarray(texture.permute(1, 2, 0).contiguous().numpy()).save(path)


def test_tables_of_places_are_read(tmp_path: Path) -> None:
    puzzle = made("shards", 6)
    truth, rows = truth_of(puzzle), []
    for index, texture in enumerate(puzzle.outlines.textures):
        save(texture, tmp_path / "vase" / f"fragment_{index:02d}.png")
        middle = torch.tensor([texture.shape[2], texture.shape[1]]) / 2 - puzzle.outlines.origins[index]
        x, y = (truth.rotation[index] @ middle + truth.translation[index]).tolist()
        degrees = math.degrees(math.atan2(truth.rotation[index, 1, 0], truth.rotation[index, 0, 0]))
        rows.append({"id": f"fragment_{index:02d}", "x": x, "y": y, "degrees": degrees})
    table(tmp_path / "vase", rows[::-1])
    assert find_recorded(tmp_path) == find_recorded(tmp_path / "vase") == [tmp_path / "vase"]
    read, layout = read_recorded(tmp_path / "vase")
    assert layout == "free"
    assert torch.allclose(truth_of(read).translation, truth.translation, atol=1e-2)
    assert torch.allclose(truth_of(read).rotation, truth.rotation, atol=1e-4)


def test_tables_of_photographs_are_read(tmp_path: Path) -> None:
    """Pieces that lie in a photograph are known by where they lie; others are refused."""
    puzzle = made(pieces=12)
    truth = truth_of(puzzle)
    photo, rows = Image.new("RGB", (4 * 100, 3 * 100), (60, 90, 150)), []
    for index, texture in enumerate(puzzle.outlines.textures):
        piece = Image.fromarray(texture.permute(1, 2, 0).contiguous().numpy())
        corner = index % 4 * 100 + 10, index // 4 * 100 + 10
        photo.paste(piece, corner, piece)
        x, y = (torch.tensor(corner) + puzzle.outlines.origins[index]).tolist()
        column, row = (truth.translation[index] / 40).floor().int().tolist()
        upright = -math.degrees(math.atan2(truth.rotation[index, 1, 0], truth.rotation[index, 0, 0]))
        rows.append({"id": f"p{index}", "row": row, "column": column, "x": x, "y": y, "upright": upright})
    photo.save(tmp_path / "sheet.png")
    table(tmp_path, rows[::-1], "sheet.csv")
    assert find_recorded(tmp_path) == [tmp_path / "sheet.csv"]
    read, layout = read_recorded(tmp_path / "sheet.csv")
    assert layout == "lattice"
    assert len(read) == 12
    score = score_outlines(read, layout, unsure(Poses(truth.rotation, truth.translation)), 0.0)
    assert (score["accuracy"], score["neighbours"]) == (100, 100)
    table(tmp_path, rows[1:], "sheet.csv")
    with pytest.raises(InputError, match="has no piece"):
        read_recorded(tmp_path / "sheet.csv")


def test_tables_of_strips_are_read(tmp_path: Path) -> None:
    rows = []
    for index, position in enumerate((2, 0, 1)):
        texture = torch.full((4, 60, 20 + index), 255, dtype=torch.uint8)
        save(texture[:3], tmp_path / "strips" / f"strip_{index}.jpg")
        save(texture[3:].expand(3, -1, -1), tmp_path / "masks" / f"strip_{index}.png")
        rows.append({"id": f"strip_{index}", "position": position, "turned": 180 * (index == 1)})
    table(tmp_path, rows)
    puzzle, layout = read_recorded(tmp_path)
    assert layout == "strips"
    assert truth_of(puzzle).translation[:, 0].argsort().tolist() == [1, 2, 0]
    assert truth_of(puzzle).rotation[:, 0, 0].round().tolist() == [1, -1, 1]
    assert true_neighbours(puzzle.outlines, truth_of(puzzle), layout).tolist() == [[0, 2], [1, 2]]


def test_bad_tables_are_refused(tmp_path: Path) -> None:
    save(made("shards", 6).outlines.textures[0], tmp_path / "vase" / "a.png")
    save(made("shards", 6).outlines.textures[1], tmp_path / "vase" / "b.png")
    place = {"x": 1, "y": 2, "degrees": 3}
    for rows, says in (
        ([{"name": "a"}], "first column must be id"),
        ([{"id": "a", "x": 1}], "has columns id,x"),
        ([{"id": "a", **place}], "has no place of b"),
        ([{"id": "a", **place}, {"id": "b", "x": "far", "y": 2, "degrees": 3}], "must be numbers"),
    ):
        table(tmp_path / "vase", rows)
        with pytest.raises(InputError, match=says):
            read_recorded(tmp_path / "vase")


def test_puzzle_folders_are_measured(tmp_path: Path) -> None:
    puzzles = [made("tabs", 6), made("torn", 9)]
    for index, puzzle in enumerate(puzzles):
        write_puzzle(puzzle, tmp_path / f"puzzle_{index}")
    write_puzzle(replace(puzzles[0], truth=None), tmp_path / "unknown")
    with pytest.raises(InputError, match=r"has no truth\.json"):
        read_recorded(tmp_path / "unknown")
    cell = OutlineCell("made", Recorded((tmp_path / "puzzle_0", tmp_path / "puzzle_1")))
    draws = Draws(cell)
    cases = [draws.case(number)[0] for number in range(2)]
    assert [len(case.puzzle) for case in cases] == [6, 9]
    # Nothing follows from the order in which pieces are listed.
    assert cases[1].puzzle.names != puzzles[1].names
    truths = {len(case.puzzle): truth_of(case.puzzle) for case in cases}
    oracle = ChanceSolver("oracle", lambda puzzle, generator: truths[len(puzzle)])
    (row,) = run_sweep(Sweep([oracle], [draws]))
    assert (row["accuracy"], row["neighbours"], row["perfect"], row.puzzles, row.pieces) == (100, 100, 100, 2, 7.5)
    assert row.precision is None
    assert results_table([row], cell.LAYOUT).row_count == 1
    assert {"data", "solver", "pieces", "missing", "seconds_per_puzzle", "overlap"} <= row.fields().keys()


def test_pictures_are_cut_and_some_pieces_missing(tmp_path: Path) -> None:
    write_picture(torch.rand(3, 60, 90, generator=seeded(3)), tmp_path / "photo.png")
    source = CutFromPictures((tmp_path / "photo.png",), "tabs", 6, 1, 30)
    cases = [OutlineCell("x", source, share).case(0, 4) for share in (0.0, 0.5)]
    assert [len(case.puzzle) for case in cases] == [6, 3]
    assert [case.whole for case in cases] == [6, 6]
    again = OutlineCell("x", source, 0.5).case(0, 4)
    assert torch.equal(again.puzzle.outlines.origins, cases[1].puzzle.outlines.origins)
    identity = OutlineCell("x", source, 0.5).identity(0, 4)
    assert "photo.png tabs 6, 1 px eroded, size 30" in str(identity["puzzle"])
    assert (identity["missing"], identity["seed"]) == (0.5, 4)
