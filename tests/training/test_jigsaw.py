"""The task: what is compared, with which weight, and how accuracy is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from diffassemble.core import Board, InputError, Puzzle
from diffassemble.io.pictures import read_picture
from diffassemble.network.batch import pack
from diffassemble.network.denoiser import Denoiser, Prediction
from diffassemble.network.encoders.image import frozen_features
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import find_matches
from diffassemble.training.config import Config
from diffassemble.training.jigsaw import JigsawTask, accuracy


def gradients(task: JigsawTask, model: nn.Module, step: int, rank: int, world: int) -> list[Tensor]:
    model.zero_grad()
    task.loss(model, step, rank, world).backward()
    return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("world", [2, 3])
def test_processes_together_have_the_gradient_of_one(tiny: Callable[..., Config], world: int) -> None:
    torch.manual_seed(0)
    config = tiny()
    task = JigsawTask(config)
    model = Denoiser(config.model)
    for step in range(3):
        alone = gradients(task, model, step, 0, 1)
        shared = [gradients(task, model, step, rank, world) for rank in range(world)]
        for whole, *parts in zip(alone, *shared, strict=True):
            torch.testing.assert_close(sum(parts) / world, whole, rtol=1e-4, atol=1e-6)


def test_batches_go_to_another_device_as_a_whole(tiny: Callable[..., Config]) -> None:
    batch = pack(JigsawTask(tiny()).stream.batch(0).puzzles, find_matches)
    moved = batch.to(torch.device("meta"))
    parts = [*vars(moved).values(), *vars(moved.matches).values(), *vars(moved.matches.pose).values()]
    tensors = [part for part in parts if isinstance(part, Tensor)]
    assert len(tensors) == 10
    assert all(part.is_meta for part in tensors)
    assert batch.to(torch.device("cpu")).content is batch.content


def test_validation_is_on_pictures_held_apart(tiny: Callable[..., Config]) -> None:
    task = JigsawTask(tiny())
    torch.manual_seed(0)
    scores = task.validate(Denoiser(tiny().model))
    names = [name for name, _ in task.held_apart]
    assert list(scores) == [
        "score",
        *(f"{name} {kind}" for name in names for kind in ("2x2", "2x2 absolute", "2x2 -30%", "3x3")),
    ]
    free = [value for name, value in scores.items() if name != "score" and not name.endswith("absolute")]
    assert scores["score"] == pytest.approx(sum(free) / len(free))
    trained = {picture.sum().item() for folder in task.stream.store.folders for picture in folder}
    held = {picture.sum().item() for _, pictures in task.held_apart for picture in pictures}
    assert len(held) == 2
    assert not trained & held


class Told(Denoiser):
    """Knows where the pieces belong."""

    def tell(self, puzzles: list[Puzzle]) -> Told:
        self.answer = torch.cat([self.space.to_vector(puzzle.truth) for puzzle in puzzles])
        return self

    def predict(self, noisy: Tensor, time: Tensor, condition: object, before: Prediction | None = None) -> Prediction:
        return Prediction(self.answer[:, None].expand_as(noisy))


def test_accuracy_of_one_who_knows(tiny: Callable[..., Config], picture_folders: tuple[Path, Path]) -> None:
    pictures = [read_picture(path) for path in sorted(picture_folders[0].iterdir())]
    generator = torch.Generator().manual_seed(0)
    puzzles = [cut_picture(picture, Board(2, 3), generator, size=16, missing=0.2) for picture in pictures]
    assert accuracy(Told(tiny().model).tell(puzzles), puzzles) == (100.0, 100.0)
    assert accuracy(Told(tiny().model), []) == (0.0, 0.0)


def test_pictures_too_small_for_the_grids_are_named_before_training(
    tiny: Callable[..., Config], tmp_path: Path
) -> None:
    config = tiny()
    least = 20  # 3 pieces of 5 pixels, in a crop of three quarters
    for index, side in enumerate([least] * 4 + [least - 1]):
        Image.effect_noise((side, side + 3), 50).save(tmp_path / f"{index}.png")
    data = replace(config.data, folders=(tmp_path,))
    with pytest.raises(InputError, match=rf"4\.png: is {least - 1}x{least + 2} pixels"):
        JigsawTask(replace(config, data=data))
    (tmp_path / "4.png").unlink()
    stream = JigsawTask(replace(config, data=data)).stream
    for step in range(60):  # no crop of a picture that is let in is too small
        stream.batch(step)


def test_the_distribution_over_cells_is_learnt_from_cached_features(
    tiny: Callable[..., Config], tmp_path: Path
) -> None:
    config = tiny()
    content = {"edge_features": False, "votes": False, "side_heads": True}
    model = replace(config.model, head="cells", backbone="efficientnet", **content)
    data = replace(config.data, variants=2, cache=tmp_path / "cache", favourite_share=1.0, erode_share=0.0)
    task = JigsawTask(replace(config, model=model, data=data))
    portion = task.stream.batch(0)
    assert all(source is not None for source in portion.sources)
    fresh, kept = task.frozen(portion), task.frozen(portion)
    assert list((tmp_path / "cache").rglob("*.npy"))
    assert torch.equal(fresh, kept)
    looked_at = torch.cat([frozen_features(puzzle.pixels) for puzzle in portion.puzzles])
    torch.testing.assert_close(fresh, looked_at, rtol=5e-3, atol=5e-2)  # kept with half of the digits
    network = task.build()
    for again in (0.0, 1.0):
        task.config = replace(task.config, training=replace(task.config.training, again_share=again, noise_share=0.5))
        loss = task.loss(network, 0, 0, 1)
        network.zero_grad()
        loss.backward()
        heard = network.cells.before.weight.grad
        assert (heard is not None and bool(heard.any())) == (again == 1.0)
        assert network.sides.no_neighbour.grad is not None
    assert 0 <= accuracy(network.eval(), portion.puzzles, steps=2)[0] <= 100
