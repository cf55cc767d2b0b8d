"""Solvers of broken objects with known scores get them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from statistics import fmean, stdev
from typing import Any

import pytest
import torch

from diffassemble.core import InputError, Poses, Puzzle, Step
from diffassemble.evaluation.fragment_benchmark import (
    FragmentRow,
    FragmentSweep,
    Solved,
    answer,
    run_fragment_sweep,
    warm_up_fragments,
)
from diffassemble.evaluation.fragment_puzzles import Damage, benchmark_cases

PROMISED = [
    *("solver", "data", "objects", "missing", "anchor", "rmse_r", "rmse_t", "part_accuracy", "all_right", "chamfer"),
    *("geodesic", "geodesic_median", "seconds_per_object", "seed"),
]


def rows(fractures: list[Any], solvers: list[Any], **options: Any) -> list[FragmentRow]:
    sweep = FragmentSweep(solvers, [("bars", fractures)], **options)
    return [row for found in run_fragment_sweep(sweep) for row in found]


@pytest.fixture
def oracle(fractures: list[Any], fragment_solver: Callable[..., Any]) -> Callable[..., Any]:
    """A solver that was told the truths of the objects to come."""

    def make(damage: Damage, seeds: int = 1) -> Any:
        truths = (
            case.puzzle.truth for seed in range(seeds) for case, _ in benchmark_cases(fractures, damage, seed=seed)
        )
        return fragment_solver("oracle", lambda puzzle, generator: next(truths))

    return make


def test_rows_have_the_promised_fields() -> None:
    assert set(PROMISED) <= {field.name for field in fields(FragmentRow)}


@pytest.mark.parametrize("damage", [Damage(), Damage(missing=0.3), Damage(noise=0.005), Damage(points=500)])
def test_an_oracle_gets_everything(fractures: list[Any], oracle: Callable[..., Any], damage: Damage) -> None:
    (row,) = rows(fractures, [oracle(damage)], damages=[damage], seeds=1)
    assert (row.part_accuracy, row.part_accuracy_rest, row.all_right) == (100.0, 100.0, 100.0)
    assert max(row.rmse_r, row.geodesic, row.rmse_t, row.chamfer) < 0.01
    assert (row.solver, row.data, row.objects, row.anchor) == ("oracle", "bars", 5, "none")
    assert (row.missing, row.noise, row.points) == (damage.missing, damage.noise, damage.points)
    assert row.deviation is None


def test_one_answer_is_seen_with_both_anchors(fractures: list[Any], fragment_solver: Callable[..., Any]) -> None:
    nothing = fragment_solver()
    absolute, relative = rows(fractures, [nothing], anchors=("none", "largest"))
    assert len(nothing.shown) == 5
    assert (absolute.anchor, relative.anchor) == ("none", "largest")
    # With the largest piece in place, at least that one is right.
    assert relative.plain.part_accuracy >= 100 * fmean(1 / len(puzzle) for puzzle in nothing.shown) - 1e-9
    assert absolute.seconds_per_object == relative.seconds_per_object > 0


def test_missing_pieces_are_drawn_five_times(fractures: list[Any], fragment_solver: Callable[..., Any]) -> None:
    nothing, fractures = fragment_solver(sure=False), fractures[1:3]
    sweep = FragmentSweep([nothing], [("bars", fractures)], [Damage(), Damage(missing=0.3)])
    heard: list[Solved] = []
    whole, damaged = (row for found in run_fragment_sweep(sweep, heard.append) for row in found)
    assert len(nothing.shown) == len(heard) == sweep.total == 2 + 10
    assert (whole.seeds, whole.objects, whole.deviation) == (1, 2, None)
    assert (damaged.seeds, damaged.objects) == (5, 2)
    single = [rows(fractures, [nothing], damages=[Damage(missing=0.3)], seed=seed, seeds=1)[0] for seed in range(5)]
    assert damaged.rmse_r == pytest.approx(fmean(row.rmse_r for row in single))
    assert damaged.part_accuracy == pytest.approx(fmean(row.part_accuracy for row in single))
    assert damaged.deviation is not None
    assert damaged.deviation.rmse_r == pytest.approx(stdev(row.rmse_r for row in single))


def test_groups_cover_all_objects_and_pieces(fractures: list[Any], fragment_solver: Callable[..., Any]) -> None:
    (row,) = rows(fractures, [fragment_solver()])
    assert [(group.name, group.objects) for group in row.classes] == [("beam", 2), ("rod", 3)]
    assert row.rmse_r == pytest.approx(fmean(group.figures.rmse_r for group in row.classes))
    assert [(group.name, group.objects) for group in row.by_pieces] == [("2", 1), ("3–4", 1), ("5–8", 2), ("9–20", 1)]
    assert sum(group.pieces for group in row.by_size) == 2 + 4 + 6 + 10 + 6
    assert [(group.name, group.pieces) for group in row.by_confidence] == [("> 0.9", 28)]
    assert row.figures.rmse_r == row.rmse_r


def test_every_solver_gets_the_same_objects_and_never_the_truth(
    fractures: list[Any], fragment_solver: Callable[..., Any]
) -> None:
    def drawn(puzzle: Puzzle, generator: torch.Generator) -> Poses:
        return Poses(Poses.identity(len(puzzle), 3).rotation, torch.randn(len(puzzle), 3, generator=generator))

    one, two = fragment_solver("one", drawn), fragment_solver("two", drawn)
    first, second = rows(fractures, [one, two], limit=3, seed=4)
    assert first.plain == second.plain
    for left, right in zip(one.shown, two.shown, strict=True):
        assert left.truth is None
        assert torch.equal(left.pieces.content, right.pieces.content)
    assert first.seed == 4


def test_a_warm_up_shows_one_object_to_each(fractures: list[Any], fragment_solver: Callable[..., Any]) -> None:
    one, two = fragment_solver(), fragment_solver()
    warm_up_fragments(FragmentSweep([one, two], [("bars", fractures)]))
    assert len(one.shown) == len(two.shown) == 1


def test_bad_wishes_are_told_before_anything_is_solved(
    fractures: list[Any], fragment_solver: Callable[..., Any]
) -> None:
    nothing = fragment_solver()
    with pytest.raises(InputError, match=r"missing 1\.5"):
        rows(fractures, [nothing], damages=[Damage(), Damage(missing=1.5)])
    with pytest.raises(InputError, match="seeds 0"):
        rows(fractures, [nothing], seeds=0)
    assert not nothing.shown


def test_a_solver_that_gives_no_answer_is_a_fault(fractures: list[Any]) -> None:
    class Silent:
        name = "silent"

        def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
            return iter(())

    case, generator = next(benchmark_cases(fractures, Damage()))
    with pytest.raises(RuntimeError, match="silent"):
        answer(Silent(), case, generator)
