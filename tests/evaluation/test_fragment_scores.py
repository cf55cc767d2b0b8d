"""Means over pieces, objects and classes, on scores made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from diffassemble.core import Poses
from diffassemble.evaluation.fragment_puzzles import Case, Damage, benchmark_cases
from diffassemble.evaluation.fragment_scores import (
    Calibration,
    ObjectScore,
    by_class,
    by_confidence,
    by_pieces,
    by_size,
    calibration,
    class_figures,
    plain_figures,
    score_object,
)


def score(category: str, errors: list[float], right: list[bool], share: list[float] | None = None) -> ObjectScore:
    count = len(errors)
    value = torch.tensor(errors)
    return ObjectScore(
        category=category,
        whole=count,
        share=torch.tensor(share or [1 / count] * count),
        euler=value,
        geodesic=2 * value,
        translation=value / 1000,
        chamfer=torch.tensor([0.001 if one else 0.5 for one in right]),
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


def test_order_does_not_matter() -> None:
    assert vars(class_figures([THREE, ONE, TWO])) == pytest.approx(vars(class_figures([ONE, TWO, THREE])))
    assert [group.name for group in by_class([THREE, ONE, TWO])] == ["beam", "rod"]


def test_groups_by_number_of_pieces() -> None:
    many = [replace(ONE, whole=whole) for whole in (2, 3, 4, 5, 8, 9, 20, 21)]
    assert [(group.name, group.objects) for group in by_pieces(many)] == [
        ("2", 1),
        ("3–4", 2),
        ("5–8", 2),
        ("9–20", 2),
        ("over 20", 1),
    ]
    assert [group.name for group in by_pieces([replace(TWO, whole=8)])] == ["5–8"]


def test_groups_by_size_count_pieces() -> None:
    tiny, small, large = by_size([ONE, TWO, THREE])
    assert [(group.name, group.pieces) for group in (tiny, small, large)] == [("< 1 %", 1), ("1–4 %", 1), ("> 4 %", 7)]
    assert (tiny.part_accuracy, tiny.rmse_r, tiny.rmse_t, tiny.geodesic) == pytest.approx((100.0, 90.0, 9.0, 180.0))
    assert small.part_accuracy == 0.0
    assert large.part_accuracy == pytest.approx(100 * 3 / 7)


def test_groups_by_confidence_tell_how_far_it_can_be_trusted() -> None:
    assert by_confidence([ONE, TWO]) == ()
    sure = replace(TWO, confidence=torch.tensor([0.95, 0.6, 0.1]))
    groups = by_confidence([ONE, sure, replace(ONE, confidence=torch.tensor([1.0, 0.92]))])
    assert [(group.name, group.pieces, group.part_accuracy) for group in groups] == [
        ("< 0.5", 1, 0.0),
        ("0.5–0.9", 1, 0.0),
        ("> 0.9", 3, 100.0),
    ]


def test_calibration_leaves_the_anchor_out() -> None:
    told = replace(THREE, confidence=torch.tensor([1.0, 0.12, 0.18, 1.0]))
    doubtful, sure = calibration([told, replace(ONE, confidence=None)])
    assert sure == Calibration(1, 1.0, 100.0)
    assert (doubtful.pieces, doubtful.confidence, doubtful.right) == (2, pytest.approx(0.15), 0.0)
    assert calibration([ONE]) == ()


@pytest.fixture
def case(fractures: list[Any]) -> Case:
    return next(case for case, _ in benchmark_cases(fractures[3:], Damage()))


def test_the_truth_has_no_errors(case: Case) -> None:
    assert case.puzzle.truth is not None
    for anchor in ("none", "largest"):
        found = score_object(case, case.puzzle.truth, anchor)
        assert found.right.all()
        assert float(found.geodesic.max()) < 1e-2
        assert found.shape < 1e-9


def test_a_whole_that_is_turned_is_right_by_its_anchor_only(case: Case) -> None:
    truth = case.puzzle.truth
    assert truth is not None
    upside = torch.diag(torch.tensor([1.0, -1.0, -1.0])).double()
    turned = Poses(upside @ truth.rotation.double(), truth.translation.double() @ upside + 0.5)
    absolute, relative = (score_object(case, turned, anchor) for anchor in ("none", "largest"))
    assert not absolute.right.any()
    assert float(absolute.geodesic.min()) > 179
    assert relative.right.all()
    assert float(relative.geodesic.max()) < 1e-2


def test_the_anchor_is_the_largest_piece(case: Case) -> None:
    found = score_object(case, Poses.identity(len(case.puzzle), 3), "largest")
    assert float(found.geodesic[case.share.argmax()]) < 1e-2
    assert float(found.translation[case.share.argmax()]) < 1e-6


def test_shuffled_pieces_score_the_same(case: Case) -> None:
    order = torch.randperm(len(case.puzzle), generator=torch.Generator().manual_seed(3))
    shuffled = replace(case, puzzle=case.puzzle.reordered(order), share=case.share[order])
    answer = Poses.identity(len(case.puzzle), 3)
    one, two = (plain_figures([score_object(each, answer, "largest")]) for each in (case, shuffled))
    assert vars(one) == pytest.approx(vars(two), rel=1e-4)
