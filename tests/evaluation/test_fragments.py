"""Broken objects: the same for everyone, damage that does what it says, and means over pieces, objects and classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from statistics import fmean, stdev
from typing import Any

import pytest
import torch

from diffassemble.core import InputError, Poses
from diffassemble.evaluation.fragments import (
    LEAST_POINTS,
    Broken,
    Calibration,
    ObjectCell,
    ObjectRow,
    ObjectScore,
    by_pieces,
    calibration,
    class_figures,
    piece_groups,
    plain_figures,
    score_object,
)
from diffassemble.evaluation.sweep import Case, Draws

PROMISED = [
    *("solver", "data", "objects", "missing", "anchor", "rmse_r", "rmse_t", "part_accuracy", "all_right", "chamfer"),
    *("geodesic", "geodesic_median", "seconds_per_object", "seed"),
]
Rows = Callable[..., list[Any]]


def cases(fractures: list[Any], **damage: Any) -> list[Case]:
    draws = Draws(ObjectCell("bars", fractures, **damage), seeds=1)
    draws.check()
    return [draws.case(number)[0] for number in range(len(draws))]


def test_rows_have_the_promised_fields() -> None:
    assert set(PROMISED) <= {field.name for field in fields(ObjectRow)}


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


def score(category: str, errors: list[float], right: list[bool], share: list[float] | None = None) -> ObjectScore:
    count = len(errors)
    return ObjectScore(
        category=category,
        whole=count,
        share=tuple(share or [1 / count] * count),
        euler=tuple(errors),
        geodesic=tuple(2 * error for error in errors),
        translation=tuple(error / 1000 for error in errors),
        chamfer=tuple(0.001 if one else 0.5 for one in right),
        shape=0.004,
        confidence=None,
        seconds=1.0,
    )


ONE = score("beam", [10.0, 20.0], [True, True], [0.9, 0.1])
TWO = score("beam", [30.0, 30.0, 60.0], [True, False, False], [0.5, 0.48, 0.02])
THREE = score("rod", [90.0, 100.0, 80.0, 90.0], [False, False, False, True], [0.4, 0.3, 0.295, 0.005])


def test_means_over_pieces_then_objects_then_classes() -> None:
    plain, classes = plain_figures([ONE, TWO, THREE]), class_figures([ONE, TWO, THREE])
    assert plain.rmse_r == pytest.approx((15 + 40 + 90) / 3)
    assert classes.rmse_r == pytest.approx(((15 + 40) / 2 + 90) / 2)
    assert plain.rmse_t == pytest.approx(100 * plain.rmse_r / 1000)
    assert plain.part_accuracy == pytest.approx(100 * (1 + 1 / 3 + 1 / 4) / 3)
    assert classes.part_accuracy == pytest.approx(100 * ((1 + 1 / 3) / 2 + 1 / 4) / 2)
    assert plain.part_accuracy_rest == pytest.approx(100 * (1 + 0 + 1 / 3) / 3)
    assert (plain.all_right, classes.all_right) == pytest.approx((100 / 3, 25.0))
    assert plain.chamfer == pytest.approx(4.0)
    assert plain.geodesic == pytest.approx(2 * plain.rmse_r)
    assert plain.geodesic_median == classes.geodesic_median == pytest.approx(80.0)


def test_groups_by_number_of_pieces() -> None:
    many = [replace(ONE, whole=whole) for whole in (2, 3, 4, 5, 8, 9, 20, 21)]
    found = [("2", 1), ("3–4", 2), ("5–8", 2), ("9–20", 2), ("over 20", 1)]
    assert [(group.name, group.objects) for group in by_pieces(many)] == found
    assert [group.name for group in by_pieces([replace(TWO, whole=8)])] == ["5–8"]


def test_groups_by_size_count_pieces() -> None:
    tiny, small, large = piece_groups("share", [ONE, TWO, THREE])
    assert [(group.name, group.pieces) for group in (tiny, small, large)] == [("< 1 %", 1), ("1–4 %", 1), ("> 4 %", 7)]
    assert (tiny.part_accuracy, tiny.rmse_r, tiny.rmse_t, tiny.geodesic) == pytest.approx((100.0, 90.0, 9.0, 180.0))
    assert small.part_accuracy == 0.0
    assert large.part_accuracy == pytest.approx(100 * 3 / 7)


def test_groups_by_confidence_tell_how_far_it_can_be_trusted() -> None:
    assert piece_groups("confidence", [ONE, TWO]) == ()
    sure = replace(TWO, confidence=(0.95, 0.6, 0.1))
    groups = piece_groups("confidence", [ONE, sure, replace(ONE, confidence=(1.0, 0.92))])
    found = [("< 0.5", 1, 0.0), ("0.5–0.9", 1, 0.0), ("> 0.9", 3, 100.0)]
    assert [(group.name, group.pieces, group.part_accuracy) for group in groups] == found


def test_calibration_leaves_the_anchor_out() -> None:
    told = replace(THREE, confidence=(1.0, 0.12, 0.18, 1.0))
    doubtful, sure = calibration([told, replace(ONE, confidence=None)])
    assert sure == Calibration(1, 1.0, 100.0)
    assert (doubtful.pieces, doubtful.confidence, doubtful.right) == (2, pytest.approx(0.15), 0.0)
    assert calibration([ONE]) == ()


@pytest.fixture
def case(fractures: list[Any]) -> Case:
    return cases(fractures[3:])[0]


def test_a_whole_that_is_turned_is_right_by_its_anchor_only(case: Case) -> None:
    truth, largest = case.puzzle.truth, int(case.share.argmax())
    assert truth is not None
    upside = torch.diag(torch.tensor([1.0, -1.0, -1.0])).double()
    turned = Poses(upside @ truth.rotation.double(), truth.translation.double() @ upside + 0.5)
    absolute, relative = (score_object(case, turned, anchor) for anchor in ("none", "largest"))
    assert not absolute.values("right").any()
    assert min(absolute.geodesic) > 179
    assert relative.values("right").all()
    assert max(relative.geodesic) < 1e-2
    held = score_object(case, Poses.identity(len(case.puzzle), 3), "largest")
    assert max(held.geodesic[largest], held.translation[largest]) < 1e-2


@pytest.mark.parametrize("damage", [{}, {"missing": 0.3}, {"noise": 0.005}, {"points": 500}])
def test_an_oracle_gets_everything(
    fractures: list[Any], oracle: Callable[..., Any], rows: Rows, damage: dict[str, Any]
) -> None:
    cell = ObjectCell("bars", fractures, **damage)
    (row,) = rows(cell, oracle([cell], seeds=1), seeds=1)
    assert (row.part_accuracy, row.part_accuracy_rest, row.all_right) == (100.0, 100.0, 100.0)
    assert max(row.rmse_r, row.geodesic, row.rmse_t, row.chamfer) < 0.01
    assert (row.solver, row.data, row.objects, row.anchor) == ("oracle", "bars", 5, "none")
    assert (row.missing, row.noise, row.points) == (cell.missing, cell.noise, cell.points)
    assert row.deviation is None


def test_one_answer_is_seen_with_both_anchors(fractures: list[Any], nothing: Any, rows: Rows) -> None:
    absolute, relative = rows(ObjectCell("bars", fractures, anchors=("none", "largest")), nothing)
    assert len(nothing.shown) == 5
    assert (absolute.anchor, relative.anchor) == ("none", "largest")
    # With the largest piece in place, at least that one is right.
    assert relative.plain.part_accuracy >= 100 * fmean(1 / len(puzzle) for puzzle in nothing.shown) - 1e-9
    assert absolute.seconds_per_object == relative.seconds_per_object > 0


def test_missing_pieces_are_drawn_five_times(fractures: list[Any], nothing: Any, rows: Rows) -> None:
    nothing.sure, fractures = False, fractures[1:3]
    (whole,), (damaged,) = (rows(ObjectCell("bars", fractures, missing), nothing) for missing in (0.0, 0.3))
    assert len(nothing.shown) == 2 + 10
    assert (whole.seeds, whole.objects, whole.deviation) == (1, 2, None)
    assert (damaged.seeds, damaged.objects) == (5, 2)
    cell = ObjectCell("bars", fractures, 0.3)
    single = [rows(cell, nothing, seed=seed, seeds=1)[0] for seed in range(5)]
    assert damaged.rmse_r == pytest.approx(fmean(row.rmse_r for row in single))
    assert damaged.part_accuracy == pytest.approx(fmean(row.part_accuracy for row in single))
    assert damaged.deviation.rmse_r == pytest.approx(stdev(row.rmse_r for row in single))


def test_a_last_draw_of_fewer_objects_counts_but_does_not_deviate(
    fractures: list[Any], nothing: Any, rows: Rows
) -> None:
    cell = ObjectCell("bars", fractures)
    (row,) = rows(cell, nothing, puzzles=12)
    assert len(nothing.shown) == 12
    assert (row.objects, row.seeds) == (5, 3)
    assert sum(group.objects for group in row.classes) == 12
    single = [rows(cell, nothing, seed=seed)[0] for seed in range(2)]
    assert row.deviation.rmse_t == pytest.approx(stdev(one.rmse_t for one in single))


def test_groups_cover_all_objects_and_pieces(fractures: list[Any], nothing: Any, rows: Rows) -> None:
    (row,) = rows(ObjectCell("bars", fractures), nothing)
    assert [(group.name, group.objects) for group in row.classes] == [("beam", 2), ("rod", 3)]
    assert row.rmse_r == pytest.approx(fmean(group.figures.rmse_r for group in row.classes))
    assert [(group.name, group.objects) for group in row.by_pieces] == [("2", 1), ("3–4", 1), ("5–8", 2), ("9–20", 1)]
    assert sum(group.pieces for group in row.by_size) == 2 + 4 + 6 + 10 + 6
    assert [(group.name, group.pieces) for group in row.by_confidence] == [("> 0.9", 28)]
