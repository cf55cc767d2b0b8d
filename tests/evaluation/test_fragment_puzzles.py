"""The same broken objects for everyone, and damage that does what it says."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diffassemble.core import InputError
from diffassemble.evaluation.fragment_puzzles import LEAST_POINTS, Broken, Case, Damage, benchmark_cases


def cases(fractures: list[Any], damage: Damage | None = None, **options: Any) -> list[Case]:
    return [case for case, _ in benchmark_cases(fractures, damage or Damage(), **options)]


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


def test_seed_and_place_decide_alone(fractures: list[Any]) -> None:
    every, again, other = cases(fractures), cases(fractures), cases(fractures, seed=1)
    few = cases(fractures, limit=2)
    assert [case.name for case in few] == ["beam/0", "rod/0"]
    for one, two in ((every, again), ([every[0], every[2]], few)):
        for first, second in zip(one, two, strict=True):
            assert torch.equal(first.puzzle.fragments.points, second.puzzle.fragments.points)
    assert not torch.equal(every[0].puzzle.fragments.points, other[0].puzzle.fragments.points)
    solving = [generator.initial_seed() for _, generator in benchmark_cases(fractures, Damage())]
    assert len(set(solving)) == len(fractures)


def test_missing_pieces_grow_in_number_and_the_rest_stays_as_it_was(fractures: list[Any]) -> None:
    whole = cases(fractures)
    kept = {share: cases(fractures, Damage(missing=share)) for share in (0.1, 0.2, 0.3)}
    assert [len(case.puzzle) for case in kept[0.3]] == [2, 3, 4, 7, 4]
    for number, case in enumerate(whole):
        names = [set(kept[share][number].puzzle.names) for share in (0.1, 0.2, 0.3)]
        assert set(case.puzzle.names) >= names[0] >= names[1] >= names[2]
        left = kept[0.3][number]
        assert left.whole == len(case.puzzle)
        for index, name in enumerate(left.puzzle.names):
            before = case.puzzle.names.index(name)
            assert torch.equal(left.puzzle.fragments.points[index], case.puzzle.fragments.points[before])
            assert left.share[index] == case.share[before]


def test_two_pieces_always_stay(fractures: list[Any]) -> None:
    assert [len(case.puzzle) for case in cases(fractures, Damage(missing=0.99))] == [2] * 5


def test_noise_spoils_what_is_given_and_not_what_is_scored(fractures: list[Any]) -> None:
    for clean, noisy in zip(cases(fractures), cases(fractures, Damage(noise=0.01)), strict=True):
        assert torch.equal(noisy.puzzle.fragments.points[noisy.share.argsort()], _by_size(clean))
        given, meant = noisy.given.fragments.meshes, noisy.puzzle.fragments.meshes
        moved = torch.cat([one.vertices - two.vertices for one, two in zip(given, meant, strict=True)])
        assert 0.004 < float(moved.std()) < 0.02
        assert all(torch.equal(one.faces, two.faces) for one, two in zip(given, meant, strict=True))
        assert not torch.equal(noisy.given.fragments.points, noisy.puzzle.fragments.points)


def _by_size(case: Case) -> torch.Tensor:
    return case.puzzle.fragments.points[case.share.argsort()]


def test_clouds_have_points_by_area_and_no_faces(fractures: list[Any]) -> None:
    for case in cases(fractures, Damage(points=2000)):
        pieces = case.given.fragments
        assert pieces.points.shape == case.puzzle.fragments.points.shape
        assert all(not len(mesh.faces) for mesh in pieces.meshes)
        for mesh, share in zip(pieces.meshes, case.share.tolist(), strict=True):
            assert len(mesh.vertices) == max(LEAST_POINTS, round(2000 * share))
        # They still lie on the piece: within the box that it fills.
        for cloud, mesh in zip(pieces.points, case.puzzle.fragments.meshes, strict=True):
            assert float(cloud.norm(dim=-1).max()) <= float(mesh.vertices.norm(dim=-1).max()) + 1e-5


@pytest.mark.parametrize(
    ("damage", "options", "message"),
    [
        (Damage(missing=1.0), {}, "missing 1.0"),
        (Damage(missing=-0.1), {}, "missing -0.1"),
        (Damage(noise=-1.0), {}, "noise -1.0"),
        (Damage(noise=float("nan")), {}, "noise nan"),
        (Damage(points=-1), {}, "points -1"),
        (Damage(), {"limit": 0}, "limit 0"),
        (Damage(), {"seed": -1}, "seed -1"),
    ],
)
def test_bad_wishes(fractures: list[Any], damage: Damage, options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        cases(fractures, damage, **options)
    with pytest.raises(InputError, match="no fractures"):
        cases([])
