"""Pools of points and the stream of broken objects that is drawn from them."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import trimesh

from diffassemble.core import Mesh
from diffassemble.fragments.datasets import Fracture, break_solids, find_fractures
from diffassemble.io.atomic import cache_folder
from diffassemble.training.config import FragmentConfig
from diffassemble.training.fragment_data import POOL_POINTS, FragmentStream, Pool, make_pool, pool_of


def boxes(count: int) -> list[Mesh]:
    """A bar of length 6 around (3, 0, 5), broken across."""
    ends = np.linspace(0, 6, count + 1)
    solids = [trimesh.creation.box(bounds=[[low, -1, 4], [high, 1, 6]]) for low, high in pairwise(ends)]
    return [Mesh(torch.tensor(solid.vertices).float(), torch.tensor(solid.faces)) for solid in solids]


@pytest.fixture
def pool() -> Pool:
    return make_pool(boxes(5), torch.Generator().manual_seed(0))


@pytest.fixture
def fracture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fracture:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "data" / "everyday" / "Bar" / "x" / "fractured_0"
    folder.mkdir(parents=True)
    for index, mesh in enumerate(boxes(3)):
        trimesh.Trimesh(mesh.vertices.numpy(), mesh.faces.numpy(), process=False).export(folder / f"piece_{index}.obj")
    return find_fractures(tmp_path / "data")[0]


def test_points_lie_on_the_whole_of_size_one(pool: Pool) -> None:
    assert pool.points.shape == pool.normals.shape == (5, POOL_POINTS, 3)
    assert torch.allclose(pool.points.amax((0, 1)), torch.tensor([0.5, 1 / 6, 1 / 6]), atol=1e-3)
    assert torch.allclose(pool.points.amin((0, 1)), -torch.tensor([0.5, 1 / 6, 1 / 6]), atol=1e-3)
    assert torch.allclose(pool.normals.norm(dim=-1), torch.ones(5, POOL_POINTS), atol=1e-6)
    top = pool.points[..., 2] > 1 / 6 - 1e-4
    assert (pool.normals[top][:, 2] > 0.99).float().mean() > 0.99


def test_truth_puts_the_puzzle_together(pool: Pool) -> None:
    puzzle = pool.scatter(torch.Generator().manual_seed(1))
    pieces = puzzle.fragments
    assert pieces.points.shape == (5, 1000, 3)
    assert pieces.points.mean(1).abs().max() < 1e-6
    assembled = puzzle.truth.apply(pieces.points)
    own = {tuple(point) for point in (pool.points * 65000).round().long().reshape(-1, 3).tolist()}
    drawn = (assembled * 65000).round().long()
    assert all(tuple(point) in own for point in drawn.reshape(-1, 3).tolist())
    assert all(len(cloud.unique(dim=0)) > 990 for cloud in drawn)
    assert all(torch.equal(mesh.vertices, cloud) for mesh, cloud in zip(pieces.meshes, pieces.points, strict=True))
    rotation = puzzle.truth.rotation
    assert torch.allclose(rotation @ rotation.mT, torch.eye(3).expand(5, 3, 3), atol=1e-5)
    assert (torch.linalg.det(rotation) > 0).all()


def test_stretched_objects_keep_size_one_and_outward_normals(pool: Pool) -> None:
    other = pool.stretched(torch.tensor([-1.0, 3.0, 6.0]))
    low, high = other.points.amin((0, 1)), other.points.amax((0, 1))
    assert torch.allclose(high, torch.tensor([0.25, 0.25, 0.5]), atol=1e-3)
    assert torch.allclose(low, -high, atol=1e-3)
    top = other.points[..., 2] > 0.5 - 1e-3
    assert (other.normals[top][:, 2] > 0.99).float().mean() > 0.98
    assert (other.points[0, :, 0].mean() > 0) == (pool.points[0, :, 0].mean() < 0)


@pytest.mark.parametrize(("missing", "left"), [(0.0, 5), (0.2, 4), (0.6, 2), (0.99, 2)])
def test_missing_pieces(pool: Pool, missing: float, left: int) -> None:
    puzzle = pool.scatter(torch.Generator().manual_seed(0), points=100, missing=missing)
    assert len(puzzle) == len(puzzle.names) == left
    assert puzzle.fragments.points.shape == (left, 100, 3)


def test_a_kept_pool_is_not_drawn_again(fracture: Fracture, monkeypatch: pytest.MonkeyPatch) -> None:
    first = pool_of(fracture)
    assert len(first) == 3
    assert len(list((cache_folder() / "pools").iterdir())) == 1
    monkeypatch.setattr(Fracture, "meshes", lambda self: pytest.fail("parsed again"))
    again = pool_of(fracture)
    assert torch.equal(again.steps, first.steps)
    assert torch.equal(again.normal_steps, first.normal_steps)


def test_changed_files_are_read_anew(fracture: Fracture) -> None:
    first = pool_of(fracture)
    file = fracture.files[1]
    file.write_text(file.read_text().replace("v 4.", "v 3."))
    os.utime(file, ns=(1, 1))
    assert not torch.equal(pool_of(fracture).steps, first.steps)


def test_a_spoilt_cache_is_mended(fracture: Fracture) -> None:
    first = pool_of(fracture)
    (kept,) = (cache_folder() / "pools").iterdir()
    sound = kept.read_bytes()
    for spoilt in (b"", sound[:100], b"something else"):
        kept.write_bytes(spoilt)
        assert torch.equal(pool_of(fracture).steps, first.steps)
        assert kept.read_bytes() == sound


def test_no_place_for_a_cache(fracture: Fracture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert len(pool_of(fracture)) == 3


def test_joined_fragments_are_the_same_object_in_fewer_pieces_with_points_spread_by_area() -> None:
    bar = [*boxes(6)[:1], boxes(2)[1]]  # a sixth and a half of the bar
    pool = make_pool([bar[0], bar[1]], torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    counts = {len(pool.joined(generator)) for _ in range(20)}
    assert counts == {1, 2}
    whole = next(joined for joined in (pool.joined(generator) for _ in range(20)) if len(joined) == 1)
    assert torch.allclose(whole.areas.sum(), pool.areas.sum())
    small = (whole.points[0, :, 0] < -0.5 + 1 / 6 + 1e-3).float().mean()
    assert float(small) == pytest.approx(float(pool.areas[0] / pool.areas.sum()), abs=0.03)
    every = {tuple(row) for row in pool.steps.flatten(0, 1).tolist()}
    assert all(tuple(row) in every for row in whole.steps[0].tolist())


@pytest.fixture(scope="module")
def stream() -> FragmentStream:
    two, three, five = (make_pool(boxes(count), torch.Generator().manual_seed(0), points=128) for count in (2, 3, 5))
    return FragmentStream(
        [[(two, None), (three, None)], [], [(five, None)]],
        FragmentConfig(points=64, whole_share=1.0),
        pieces=20,
        seed=0,
    )


def test_a_batch_is_the_same_every_time_and_another_at_every_step(stream: FragmentStream) -> None:
    first, again, other = (stream.batch(step).puzzles for step in (4, 4, 5))
    assert all(torch.equal(a.fragments.points, b.fragments.points) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0].fragments.points[0], other[0].fragments.points[0])
    assert sum(map(len, first)) >= 20


@pytest.mark.parametrize("world", [2, 3])
def test_processes_together_get_what_one_alone_would(stream: FragmentStream, world: int) -> None:
    alone, parts = stream.batch(1), [stream.batch(1, rank, world) for rank in range(world)]
    shared = [puzzle for part in parts for puzzle in part.puzzles]
    assert torch.equal(
        torch.cat([puzzle.fragments.points for puzzle in alone.puzzles]),
        torch.cat([puzzle.fragments.points for puzzle in shared]),
    )
    total = sum(map(len, alone.puzzles))
    for part in parts:
        assert part.weight == pytest.approx(sum(map(len, part.puzzles)) * world / total)


def test_what_is_kept_of_made_solids_is_found_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (made,) = break_solids(1, 1, (2, 2))
    pool_of(made)
    monkeypatch.chdir(tmp_path)
    pool_of(made)
    assert len(list((cache_folder() / "pools").iterdir())) == 1
