"""Broken objects: the same for everyone, damage that does what it says, and means over pieces, objects and classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import pytest
import torch

from diffassemble.core import InputError, Placements, Poses
from diffassemble.evaluation.fragments import LEAST_POINTS, Broken, ObjectCell, piece_parts, score_object
from diffassemble.evaluation.rows import Score, summarise
from diffassemble.evaluation.sweep import Case, Draws

Rows = Callable[..., list[Any]]


def cases(fractures: list[Any], **damage: Any) -> list[Case]:
    draws = Draws(ObjectCell("bars", fractures, **damage), seeds=1)
    draws.check()
    return [draws.case(number)[0] for number in range(len(draws))]


def test_the_truth_puts_the_object_together(fractures: list[Any]) -> None:
    assert isinstance(fractures[0], Broken)
    for case, fracture in zip(cases(fractures), fractures, strict=True):
        puzzle = case.puzzle
        assert puzzle.truth is not None
        assert case.given.truth is None
        assert (case.name, case.category, case.whole) == (fracture.name, fracture.category, len(fracture.meshes()))
        stood = puzzle.truth.apply(puzzle.fragments.points).flatten(0, 1)
        assert float((stood.amax(0) - stood.amin(0)).max()) == pytest.approx(1.0, abs=0.01)
        assert float(case.share.sum()) == pytest.approx(1.0)
        assert all(mesh.vertices.shape == (8, 3) for mesh in puzzle.fragments.meshes)


def test_missing_pieces_grow_in_number_and_the_rest_stays_as_it_was(fractures: list[Any]) -> None:
    whole = cases(fractures)
    kept = {share: cases(fractures, missing=share) for share in (0.1, 0.2, 0.3)}
    assert [len(case.puzzle) for case in kept[0.3]] == [2, 3, 4, 7, 4]
    assert [len(case.puzzle) for case in cases(fractures, missing=0.99)] == [2] * 5
    for number, case in enumerate(whole):
        names = [set(kept[share][number].puzzle.names) for share in (0.1, 0.2, 0.3)]
        assert set(case.puzzle.names) >= names[0] >= names[1] >= names[2]
        left = kept[0.3][number]
        assert left.whole == len(case.puzzle)
        for index, name in enumerate(left.puzzle.names):
            before = case.puzzle.names.index(name)
            assert torch.equal(left.puzzle.fragments.points[index], case.puzzle.fragments.points[before])
            assert left.share[index] == case.share[before]


def test_noise_spoils_what_is_given_and_not_what_is_scored(fractures: list[Any]) -> None:
    for clean, noisy in zip(cases(fractures), cases(fractures, noise=0.01), strict=True):
        assert torch.equal(noisy.puzzle.fragments.points, clean.puzzle.fragments.points)
        given, meant = noisy.given.fragments.meshes, noisy.puzzle.fragments.meshes
        moved = torch.cat([one.vertices - two.vertices for one, two in zip(given, meant, strict=True)])
        assert 0.004 < float(moved.std()) < 0.02
        assert all(torch.equal(one.faces, two.faces) for one, two in zip(given, meant, strict=True))
        assert not torch.equal(noisy.given.fragments.points, noisy.puzzle.fragments.points)


def test_clouds_have_points_by_area_and_no_faces(fractures: list[Any]) -> None:
    for case in cases(fractures, points=2000):
        pieces = case.given.fragments
        assert pieces.points.shape == case.puzzle.fragments.points.shape
        assert all(not len(mesh.faces) for mesh in pieces.meshes)
        for mesh, share in zip(pieces.meshes, case.share.tolist(), strict=True):
            assert len(mesh.vertices) == max(LEAST_POINTS, round(2000 * share))
        # They still lie on the piece: within the box that it fills.
        for cloud, mesh in zip(pieces.points, case.puzzle.fragments.meshes, strict=True):
            assert float(cloud.norm(dim=-1).max()) <= float(mesh.vertices.norm(dim=-1).max()) + 1e-5


@pytest.mark.parametrize(
    ("options", "message"),
    [({"noise": -1.0}, "noise -1.0"), ({"noise": float("nan")}, "noise nan"), ({"points": -1}, "points -1")],
)
def test_bad_wishes(fractures: list[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        cases(fractures, **options)
    with pytest.raises(InputError, match="no fractures"):
        cases([])


def score(category: str, errors: list[float], right: list[float], area: list[float]) -> Score:
    """Of pieces with these errors; the figures are means, as `score_object` makes them."""
    columns = {
        **{"area": area, "confidence": [0.0] * len(right), "right": right, "rmse_r": errors},
        **{"rmse_t": [error / 10 for error in errors], "geodesic": [2 * error for error in errors]},
    }
    figures = {name: fmean(columns[name]) for name in ("rmse_r", "rmse_t", "geodesic")}
    figures |= {"part_accuracy": 100 * fmean(right), "all_right": 100.0 * all(right)}
    return Score(
        len(right), figures, category=category, columns={name: tuple(column) for name, column in columns.items()}
    )


ONE = score("beam", [10.0, 20.0], [1, 1], [0.9, 0.1])
TWO = score("beam", [30.0, 30.0, 60.0], [1, 0, 0], [0.5, 0.48, 0.02])
THREE = score("rod", [90.0, 100.0, 80.0, 90.0], [0, 0, 0, 1], [0.4, 0.3, 0.295, 0.005])


def test_means_over_pieces_then_objects_then_classes() -> None:
    classes, intervals, plain = summarise([ONE, TWO, THREE], ("geodesic",))
    assert plain["rmse_r"] == pytest.approx((15 + 40 + 90) / 3)
    assert classes["rmse_r"] == pytest.approx(((15 + 40) / 2 + 90) / 2)
    assert plain["part_accuracy"] == pytest.approx(100 * (1 + 1 / 3 + 1 / 4) / 3)
    assert classes["part_accuracy"] == pytest.approx(100 * ((1 + 1 / 3) / 2 + 1 / 4) / 2)
    assert (plain["all_right"], classes["all_right"]) == pytest.approx((100 / 3, 25.0))
    assert plain["geodesic_median"] == pytest.approx(80.0)
    low, high = intervals["rmse_r"]
    assert 15 <= low < classes["rmse_r"] < high <= 90


def test_groups_by_size_count_pieces() -> None:
    tiny, small, large = piece_parts("area", [ONE, TWO, THREE])
    assert [(part.name, part.count) for part in (tiny, small, large)] == [("< 1 %", 1), ("1–4 %", 1), ("≥ 4 %", 7)]
    assert tiny.figures == pytest.approx({"part_accuracy": 100.0, "rmse_r": 90.0, "rmse_t": 9.0, "geodesic": 180.0})
    assert small.figures["part_accuracy"] == 0.0
    assert large.figures["part_accuracy"] == pytest.approx(100 * 3 / 7)


def test_groups_by_confidence_show_how_far_it_can_be_trusted() -> None:
    sure = replace(TWO, columns={**TWO.columns, "confidence": (0.95, 0.6, 0.1)})
    full = replace(ONE, columns={**ONE.columns, "confidence": (1.0, 0.9)})
    found = [(part.name, part.count, part.figures["part_accuracy"]) for part in piece_parts("confidence", [sure, full])]
    assert found == [("< 0.5", 1, 0.0), ("0.5–0.9", 1, 0.0), ("≥ 0.9", 3, 100.0)]


@pytest.fixture
def case(fractures: list[Any]) -> Case:
    return cases(fractures[3:])[0]


def test_a_whole_that_is_turned_is_right_by_its_anchor_only(case: Case) -> None:
    truth, largest = case.puzzle.truth, int(case.share.argmax())
    assert truth is not None
    upside = torch.diag(torch.tensor([1.0, -1.0, -1.0])).double()
    turned = Poses(upside @ truth.rotation.double(), truth.translation.double() @ upside + 0.5)
    found = Placements(turned, torch.ones(len(turned)))
    absolute, relative = (score_object(case, found, anchor) for anchor in ("none", "largest"))
    assert absolute["part_accuracy"] == 0
    assert min(absolute.columns["geodesic"]) > 179
    assert relative["part_accuracy"] == relative["all_right"] == 100
    assert max(relative.columns["geodesic"]) < 1e-2
    # What is confirmed does not depend on the pose of the whole.
    assert all((one.sure, one.sure_right, one.false_joins) == (10, 10, 0) for one in (absolute, relative))
    held = score_object(case, Placements(Poses.identity(len(turned), 3), torch.zeros(len(turned))), "largest")
    assert max(held.columns["geodesic"][largest], held.columns["rmse_t"][largest]) < 1e-2
    assert (held.sure, held.false_joins) == (0, 0)


def test_one_piece_that_is_sure_and_wrong_makes_a_false_join_with_every_other(case: Case) -> None:
    truth = case.puzzle.truth
    assert truth is not None
    largest = int(case.share.argmax())
    moved = truth.translation.clone()
    moved[largest] += 0.5
    wrong = Poses(truth.rotation, moved)
    score = score_object(case, Placements(wrong, torch.ones(10)), "none")
    assert (score.sure, score.sure_right, score.false_joins) == (10, 9, 9)
    objects = torch.zeros(10, dtype=torch.long)
    objects[largest] = 1
    alone = score_object(case, Placements(wrong, torch.ones(10), objects), "none")
    assert (alone.sure, alone.false_joins) == (10, 0)


@pytest.mark.parametrize("damage", [{}, {"missing": 0.3}, {"noise": 0.005}, {"points": 500}])
def test_an_oracle_gets_everything(
    fractures: list[Any], oracle: Callable[..., Any], rows: Rows, damage: dict[str, Any]
) -> None:
    cell = ObjectCell("bars", fractures, **damage)
    (row,) = rows(cell, oracle([cell], seeds=1), seeds=1)
    assert [row[name] for name in ("part_accuracy", "part_accuracy_rest", "all_right")] == [100.0] * 3
    assert max(row[name] for name in ("rmse_r", "geodesic", "rmse_t", "chamfer")) < 0.01
    assert (row.solver, row.data, row.items, row.setting["anchor"]) == ("oracle", "bars", 5, "none")
    assert row.setting == {**cell.setting, "anchor": "none"}
    assert (row.sure_right, row.false_joins) == (row.sure, 0)
    assert row.deviation is None


def test_missing_pieces_are_drawn_five_times(fractures: list[Any], nothing: Any, rows: Rows) -> None:
    nothing.sure, fractures = False, fractures[1:3]
    (whole,), (damaged,) = (rows(ObjectCell("bars", fractures, missing), nothing) for missing in (0.0, 0.3))
    assert len(nothing.shown) == 2 + 10
    assert (whole.seeds, whole.items, whole.deviation) == (1, 2, None)
    assert (damaged.seeds, damaged.items) == (5, 2)
    cell = ObjectCell("bars", fractures, 0.3)
    single = [rows(cell, nothing, seed=seed, seeds=1)[0] for seed in range(5)]
    assert damaged["rmse_r"] == pytest.approx(fmean(row["rmse_r"] for row in single))
    assert damaged["part_accuracy"] == pytest.approx(fmean(row["part_accuracy"] for row in single))
    assert damaged.deviation["rmse_r"] == pytest.approx(stdev(row["rmse_r"] for row in single))
    # A last draw of fewer objects counts but does not deviate.
    (more,) = rows(ObjectCell("bars", fractures), nothing, puzzles=5)
    assert (more.items, more.seeds, more.puzzles) == (2, 3, 5)
    single = [rows(ObjectCell("bars", fractures), nothing, seed=seed)[0] for seed in range(2)]
    assert more.deviation["rmse_t"] == pytest.approx(stdev(one["rmse_t"] for one in single))


def test_both_anchors_and_parts_cover_all_objects_and_pieces(fractures: list[Any], nothing: Any, rows: Rows) -> None:
    row, relative = rows(ObjectCell("bars", fractures, anchors=("none", "largest")), nothing)
    assert len(nothing.shown) == 5
    assert (row.setting["anchor"], relative.setting["anchor"]) == ("none", "largest")
    # With the largest piece in place, at least that one is right.
    assert relative.plain["part_accuracy"] >= 100 * fmean(1 / len(puzzle) for puzzle in nothing.shown) - 1e-9
    assert row.seconds_per_puzzle == relative.seconds_per_puzzle > 0
    parts = {by: [(part.name, part.count) for part in row.parts if part.by == by] for by in ("class", "pieces")}
    assert parts["class"] == [("beam", 2), ("rod", 3)]
    assert parts["pieces"] == [("2", 1), ("3–4", 1), ("5–8", 2), ("9–20", 1)]
    means = [part.figures["rmse_r"] for part in row.parts if part.by == "class"]
    assert row["rmse_r"] == pytest.approx(fmean(means))
    assert sum(part.count for part in row.parts if part.by == "area") == 2 + 4 + 6 + 10 + 6
    assert [(part.name, part.count) for part in row.parts if part.by == "confidence"] == [("≥ 0.9", 28)]
