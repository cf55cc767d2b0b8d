"""All tasks keep one contract and learn; what each learns from, and how it is scored, is right."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from manifold3d import Manifold
from torch import Tensor

from diffassemble.core import Board, InputError, Poses, Puzzle
from diffassemble.core.poses import plane_rotations
from diffassemble.fragments.breaking import fracture, mesh_of, scatter
from diffassemble.fragments.damage import UNHARMED, Damage
from diffassemble.fragments.datasets import break_solids
from diffassemble.fragments.descriptors import surface_features
from diffassemble.fragments.model import MATCH_FEATURES, FractureModels
from diffassemble.io.pictures import write_picture
from diffassemble.network.denoiser import Denoiser, Prediction
from diffassemble.network.encoders.image import frozen_features
from diffassemble.network.upright import looked_at
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import TERMS, EdgeCompatibility
from diffassemble.training.config import Config
from diffassemble.training.denoising import rotation_loss, translation_loss
from diffassemble.training.edge_model import ALONE, choice_loss, partners
from diffassemble.training.fracture_matching import (
    FractureMatchingTask,
    damaged,
    drawn_damage,
    match_examples,
    surface_examples,
)
from diffassemble.training.fragments import FragmentConfig, gather, make_pool
from diffassemble.training.jigsaw import JigsawTask, accuracy
from diffassemble.training.loop import Task, train
from diffassemble.training.orientation import UP, candidates, partly
from diffassemble.training.upright import VARIANTS, UprightData, UprightTask, varied
from diffassemble_research.tasks import PaperFragmentTask

EVERY = ("jigsaw", "upright", "edge-model", "fragments", "outlines", "arcs", "strips", "fracture-matching")
EVERY = (*EVERY, "orientation", "fragments-paper-form", "baseline-global")
BLOCK = mesh_of(Manifold.cube((1.0, 0.8, 0.5), True), 1.0, torch.zeros(3))
SEEDED_BY_PROCESS = {"arcs", "fracture-matching"}
"""tasks of which processes draw examples of their own"""


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name", EVERY)
def test_tasks_go_through_the_loop(
    name: str, configs: dict[str, Config], tasks: dict[str, Task], tmp_path: Path
) -> None:
    config = replace(configs[name], training=replace(configs[name].training, steps=1, validate_every=1))
    network = train(config, tasks[name], tmp_path, resume=False)
    again = type(network).from_pretrained(tmp_path / "last")
    assert again.config == config.model
    assert all(value.isfinite().all() for value in network.state_dict().values())
    head, row = (line.split(",") for line in (tmp_path / "log.csv").read_text().splitlines())
    assert (row[0], head[4]) == ("1", "score")


@pytest.mark.parametrize("name", EVERY)
def test_a_step_is_a_function_of_its_number_and_shared_out(name: str, tasks: dict[str, Task]) -> None:
    task = tasks[name]
    torch.manual_seed(0)
    model = task.build().eval()
    first, second, again = (task.loss(model, step, 0, 1).item() for step in (3, 4, 3))
    assert first == again != second
    if name not in SEEDED_BY_PROCESS:
        shared = [task.loss(model, 3, rank, 2).item() for rank in (0, 1)]
        # Sheets are weighed by their pieces before some are lost.
        assert sum(shared) / 2 == pytest.approx(first, rel=0.1 if name == "outlines" else 1e-3)


@pytest.mark.parametrize("name", ["jigsaw", "edge-model", "fragments-paper-form", "fracture-matching", "orientation"])
def test_a_batch_that_comes_again_is_learnt(name: str, tasks: dict[str, Task]) -> None:
    task = tasks[name]
    torch.manual_seed(0)
    model, losses = task.build().train(), list[float]()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    for _ in range(12):
        optimizer.zero_grad()
        loss = task.loss(model, 0, 0, 1)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]


@given(st.integers(1, 9), st.integers(0, 1000), st.booleans())
def test_rotation_loss_is_the_distance_of_the_product_from_the_identity(count: int, seed: int, noisy: bool) -> None:
    turns = [plane_rotations(7 * torch.rand(count, generator=generator(seed + i)).double()) for i in range(2)]
    if noisy:  # what a network predicts is no rotation
        turns[1] = torch.randn(count, 2, 2, generator=generator(seed)).double()
    true, predicted = (Poses(turn, torch.zeros(count, 2)) for turn in turns)
    product = true.rotation.mT @ predicted.rotation
    literally = torch.linalg.matrix_norm(product - torch.eye(2).double()).square().mean()
    torch.testing.assert_close(rotation_loss(true, predicted), literally)
    assert rotation_loss(true, true) == translation_loss(true, true) == 0


# Square pieces.


def test_validation_is_on_pictures_held_apart(tasks: dict[str, Task]) -> None:
    task = tasks["jigsaw"]
    assert isinstance(task, JigsawTask)
    torch.manual_seed(0)
    scores = task.validate(task.build())
    names = [name for name, _ in task.stream.held_apart]
    kinds = ("2x2", "2x2 absolute", "2x2 -30%", "3x3")
    assert list(scores) == ["score", *(f"{name} {kind}" for name in names for kind in kinds)]
    free = [value for name, value in scores.items() if name != "score" and not name.endswith("absolute")]
    assert scores["score"] == pytest.approx(sum(free) / len(free))
    trained = {picture.sum().item() for folder in task.stream.pictures.groups for picture in folder}
    held = {picture.sum().item() for _, pictures in task.stream.held_apart for picture in pictures}
    assert len(held) == 2
    assert not trained & held


class Informed(Denoiser):
    """Predicts the truth."""

    def given(self, puzzles: list[Puzzle]) -> Informed:
        self.answer = torch.cat([self.space.to_vector(puzzle.truth) for puzzle in puzzles])
        return self

    def predict(self, noisy: Tensor, time: Tensor, condition: object, before: Prediction | None = None) -> Prediction:
        return Prediction(self.answer[:, None].expand_as(noisy))


def test_the_truth_is_fully_accurate(tiny: Callable[..., Config]) -> None:
    pictures = torch.rand(3, 3, 40, 60, generator=generator())
    puzzles = [cut_picture(picture, Board(2, 3), generator(), size=16, missing=0.2) for picture in pictures]
    assert accuracy(Informed(tiny().model).given(puzzles), puzzles) == (100.0, 100.0)
    assert accuracy(Informed(tiny().model), []) == (0.0, 0.0)


def test_the_distribution_over_cells_is_learnt_from_cached_features(
    tiny: Callable[..., Config], tmp_path: Path
) -> None:
    content = {"edge_features": False, "votes": False, "side_heads": True, "head": "cells", "backbone": "efficientnet"}
    config = tiny(model=content, noise_share=0.5)
    data = {"variants": 2, "cache": tmp_path / "cache", "favourite_share": 1.0, "erode_share": 0.0}
    task = JigsawTask(replace(config, data=replace(config.data, **data)))
    portion = task.portion(0)
    assert all(picture is not None for picture in portion.pictures)
    fresh, kept = task.frozen(portion), task.frozen(portion)
    assert list((tmp_path / "cache").rglob("*.npz"))
    assert torch.equal(fresh, kept)
    direct = torch.cat([frozen_features(puzzle.pixels) for puzzle in portion.puzzles])
    torch.testing.assert_close(fresh, direct, rtol=5e-3, atol=5e-2)  # kept with half of the digits
    network = task.build()
    for again in (0.0, 1.0):
        task.config = replace(task.config, training=replace(task.config.training, again_share=again))
        network.zero_grad()
        task.loss(network, 0, 0, 1).backward()
        read = network.cells.before.weight.grad
        assert (read is not None and bool(read.any())) == (again == 1.0)
        assert network.sides.no_neighbour.grad is not None


def test_partners_are_mutual_and_sides_at_the_frame_are_alone(tasks: dict[str, Task]) -> None:
    picture = torch.rand(3, 60, 80, generator=generator())
    found = partners([cut_picture(picture, Board(3, 4), generator(seed)) for seed in range(2)])
    assert len(found) == 2 * 48
    assert int((found == ALONE).sum()) == 2 * 14
    sides, has = torch.arange(len(found)), found != ALONE
    assert torch.equal(found[found[has]], sides[has])
    assert torch.equal(found[has] // 48, sides[has] // 48)
    scores = tasks["edge-model"].validate(tasks["edge-model"].build())
    assert [name.split()[-2] for name in list(scores)[1:]] == ["0", "1", "2"] * 2
    assert scores["score"] == pytest.approx(sum(list(scores.values())[1:]) / 6)


def test_the_loss_is_the_probability_of_the_true_choice() -> None:
    """Three pieces whose fits are all zero: eight sides of others and to be alone are equally probable."""
    zero = torch.zeros(12, 1)
    compatibility = EdgeCompatibility(zero, zero, torch.tensor(0.0), torch.zeros(TERMS), 0)
    partner = torch.full((12,), ALONE)
    partner[0], partner[5] = 5, 0
    assert choice_loss(compatibility, partner).item() == pytest.approx(math.log(9.0))
    surely_alone = replace(compatibility, alone=torch.tensor(50.0))
    assert choice_loss(surely_alone, torch.full((12,), ALONE)).item() == pytest.approx(0)


def test_upright_is_learnt_and_calibrated_from_cached_features(
    configs: dict[str, Config], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):  # bright at the top
        fading = torch.linspace(0.9, 0.1, 32)[:, None] + 0.1 * torch.randn(3, 32, 32, generator=generator(number))
        write_picture(fading.clamp(0, 1), tmp_path / f"{number:02}.png")
    config = configs["upright"]
    data = UprightData(folders=(tmp_path,), held_apart=3, variants=8, cache=tmp_path / "cache")
    model = replace(config.model, dropout=0.0)
    task = UprightTask(Config(model, data, replace(config.training, pictures=8)))
    torch.manual_seed(0)
    network = task.build()
    optimizer = torch.optim.AdamW(network.parameters(), 2e-3)
    for step in range(12):
        optimizer.zero_grad()
        task.loss(network.train(), step, 0, 1).backward()
        optimizer.step()
    scores = task.validate(network)
    heat = float(network.temperature)
    assert min(scores.values()) > 50
    assert heat != 1
    assert (task.validate(network), float(network.temperature)) == (scores, heat)
    fresh = task.loss(network, 0, 0, 1)
    monkeypatch.setattr("diffassemble.training.upright.views_of", None)
    assert torch.equal(task.loss(network, 0, 0, 1), fresh)


@pytest.mark.parametrize("shape", sorted({shape for shape, _ in VARIANTS}))
def test_variations_have_no_unknown_pixels(shape: tuple[int, int]) -> None:
    picture = torch.randint(256, (3, 50, 60), generator=generator()).byte()
    for seed in range(3):
        seen = varied(picture, shape, 96, generator(seed), UprightData())
        assert seen.shape[-2:] == looked_at(*shape, 96)
        assert 0 <= seen.min() <= seen.max() <= 1


# Broken objects.


def packed_object(file: Path, meshes: list[Any]) -> None:
    """An object in the packed form of Breaking Bad."""
    vertices, faces = [mesh.vertices.numpy() for mesh in meshes], [mesh.faces.numpy() for mesh in meshes]
    arrays = {
        "v": (np.concatenate(vertices) * 65000).round().clip(-32767, 32767).astype(np.int16),
        "f": np.concatenate(faces).astype(np.uint16),
        "vo": np.cumsum([0, *map(len, vertices)]),
        "fo": np.cumsum([0, *map(len, faces)]),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(file, **{f"fractured_0/{key}": value for key, value in arrays.items()})


def test_nothing_held_out_or_apart_is_learnt_from(configs: dict[str, Config], tmp_path: Path) -> None:
    for number, made in enumerate(break_solids(4, 1, (2, 3))):
        packed_object(tmp_path / "bb" / "everyday" / made.source.name / f"object{number}.npz", made.meshes())
    (tmp_path / "bb" / "val_objects.txt").write_text(f"everyday/{made.source.name}/object3.npz\n")
    for name in ("bb_object0", "bb_object1", "bb_object3", "other"):
        (tmp_path / "meshes").mkdir(exist_ok=True)
        (tmp_path / "meshes" / f"{name}.ply").touch()
    data = FragmentConfig(folders=(tmp_path / "bb",), meshes=(tmp_path / "meshes",), held_apart=1, breaks=1)
    (found, files, solids), apart = gather(data)
    assert {fracture.source.stem for fracture in found} == {"object1", "object2"}
    assert {fracture.object for fracture in apart} == {"object0"}
    assert {made.source.stem for made in files} == {"bb_object1", "other"}
    assert not solids
    with pytest.raises(InputError, match="not a folder"):
        gather(FragmentConfig(meshes=(Path("nowhere"),)))
    config = configs["fragments-paper-form"]
    task = PaperFragmentTask(replace(config, data=replace(data, meshes=(), points=64)))
    scores = task.validate(task.build().eval())
    assert scores["score"] == pytest.approx(scores["part accuracy"] - scores["RMSE(R)"])
    assert scores["RMSE(T)"] > 0


def test_the_shape_is_compared_too_and_half_precision_tells_points_apart(configs: dict[str, Config]) -> None:
    config = configs["fragments-paper-form"]
    task = PaperFragmentTask(config)
    model = task.build()
    whole = task.loss(model, 0, 0, 1).item()
    with torch.autocast("cpu", torch.bfloat16):
        assert task.loss(model, 0, 0, 1).item() == pytest.approx(whole, rel=0.02)
    task.config = replace(config, training=replace(config.training, chamfer_weight=0.0))
    assert task.loss(model, 0, 0, 1).item() < whole


def test_up_is_the_first_of_the_candidates_and_the_largest_fragment_is_never_lost() -> None:
    (made,) = break_solids(1, 1, (4, 4))
    pool = make_pool(made.meshes(), generator(), 400)
    ways = candidates(partly(pool, 0.0, 200, generator()), generator())
    assert torch.equal(ways[0], UP)
    assert float((ways[1:] @ UP).max()) < math.cos(math.radians(5.9))
    assert torch.allclose(ways.norm(dim=-1), torch.ones(len(ways)), atol=1e-5)
    largest = pool.points[pool.areas.argmax()]
    for seed in range(5):
        points = partly(pool, 1.0, 50, generator(seed))
        assert float(torch.cdist(points, largest).amin(1).min()) == pytest.approx(0.0, abs=1e-3)


def test_examples_of_surfaces_know_breaks_even_under_noise_and_leave_out_levels_finer_than_clouds() -> None:
    halves = fracture(BLOCK, 2, generator(3))
    clean, noisy, sparse = (
        surface_examples(halves, generator(), damage) for damage in (UNHARMED, Damage(noise=0.004), Damage(points=2000))
    )
    for level, one in enumerate(clean):
        assert one.features.shape == (len(one.broken), surface_features(level))
        assert np.isfinite(one.features).all()
        assert 0.05 < one.broken.mean() < 0.95
        assert one.own.shape == one.counterpart.shape
        assert len(one.own) > 50
    shares = [one[0].weight[one[0].broken, 0].sum() / one[0].weight[:, 0].sum() for one in (clean, noisy)]
    assert 0.05 < shares[0] < 0.6
    assert abs(shares[0] - shares[1]) < 0.05
    assert [len(one.broken) > 0 for one in sparse] == [True, False, False]


def test_examples_of_matches_of_damaged_puzzles_hold_true_ones() -> None:
    chance = generator(5)
    puzzle = scatter(fracture(BLOCK, 4, chance), chance)
    left = damaged(puzzle, Damage(noise=0.001), 0.5, chance)
    assert len(left) == len(damaged(puzzle, UNHARMED, 0.9, chance)) == 2
    for pose, mesh in zip(left.truth.translation, left.fragments.meshes, strict=True):
        kept = int((puzzle.truth.translation - pose).norm(dim=1).argmin())
        assert 0.0007 < float((mesh.vertices - puzzle.fragments.meshes[kept].vertices).std()) < 0.0013
    chance = generator(5)
    two = scatter(fracture(BLOCK, 2, chance), chance)
    made = match_examples(two, FractureModels.from_pretrained("fracture-matching"), chance, searches=2)
    assert made.numbers.shape == (len(made.true), MATCH_FEATURES)
    assert made.true.any()


def test_all_kinds_of_damage_are_drawn() -> None:
    drawn = [drawn_damage(generator(seed)) for seed in range(60)]
    assert any(not damage for damage in drawn)
    assert any(damage.wear for damage in drawn)
    assert any(damage.points for damage in drawn)
    assert 0.002 < max(damage.noise for damage in drawn) <= 0.003


def test_fits_are_learnt_after_surfaces(configs: dict[str, Config]) -> None:
    config = configs["fracture-matching"]
    data, training = replace(config.data, learn="fits"), replace(config.training, start_from="fracture-matching")
    task = FractureMatchingTask(Config(config.model, data, training))
    task.held_matches = task.matches
    network = task.build()
    assert task.loss(network, 0, 0, 1).isfinite()
    assert 0 <= task.validate(network)["fits"] <= 100
