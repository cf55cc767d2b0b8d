"""The task of learning which way is up."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.datasets.config import DataConfig
from diffassemble.datasets.store import PictureStore, load_store, split_paths
from diffassemble.datasets.stream import seeded, share_out
from diffassemble.datasets.variation import UNKNOWN, Variation, vary
from diffassemble.files.images import to_levels
from diffassemble.model.upright import Upright, UprightConfig, upright_turn
from diffassemble.training.config import TrainingConfig
from diffassemble.training.jigsaw import folder_names

FIRST = Variation(smallest_crop=0.88, tilt=3.0, light=0.10, holed_share=0.12)
LAST = Variation(smallest_crop=0.70, tilt=6.0, light=0.22, holed_share=0.25)
"""Variation grows from the first to the last: plain pictures teach fastest, varied ones keep from learning by heart."""

SMOOTHING = 0.03


class UprightTask:
    """Upright pictures against their own other turns; accuracy on pictures held apart, whole and with holes."""

    def __init__(self, model: UprightConfig, data: DataConfig, training: TrainingConfig, pictures: int = 16) -> None:
        self.model, self.training, self.pictures = model, training, pictures
        splits = [split_paths(folder, data.held_apart) for folder in data.folders]
        self.store = shrunk(load_store([train for train, _ in splits], data.shares), 2 * model.size)
        held_apart = shrunk(load_store([held for _, held in splits], ()), 2 * model.size)
        self.held_apart = list(zip(folder_names(data), held_apart.folders, strict=True))

    def build(self) -> Upright:
        """A fresh network."""
        return Upright(self.model)

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        """This process's part of the mean loss over the batch at `step`."""
        numbers, weight = share_out(self.pictures, rank, world)
        generator = seeded(self.training.seed, step, rank)
        pictures = torch.stack([self.store.draw(generator) for _ in numbers])
        variation = FIRST.towards(LAST, step / self.training.steps)
        varied = vary(pictures, self.model.size, variation, generator)
        logits = model(varied.to(next(model.parameters()).device))
        target = torch.zeros(len(pictures), dtype=torch.long, device=logits.device)
        return weight * F.cross_entropy(logits, target, label_smoothing=SMOOTHING)

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Accuracy in percent by folder, whole and with 30 % of 6×6 cells missing; "score" is the mean."""
        assert isinstance(model, Upright)
        model.eval()
        scores: dict[str, float] = {}
        for name, pictures in self.held_apart:
            colours = [picture.float() / 255 for picture in pictures]
            scores[name] = accuracy(model, colours)
            scores[f"{name} -30%"] = accuracy(model, [with_lost_cells(p, i) for i, p in enumerate(colours)])
        return {"score": sum(scores.values()) / max(1, len(scores)), **scores}


def accuracy(model: Upright, pictures: list[Float[Tensor, "3 H W"]]) -> float:
    """Share of upright pictures that are left as they are, in percent."""
    return 100 * sum(upright_turn(model, picture) == 0 for picture in pictures) / max(1, len(pictures))


def with_lost_cells(picture: Float[Tensor, "3 H W"], seed: int) -> Float[Tensor, "3 H W"]:
    """The picture without 30 % of its 6×6 cells, at random."""
    lost = torch.rand(1, 1, 6, 6, generator=seeded(79, seed)) < 0.3
    return torch.where(F.interpolate(lost.float(), picture.shape[-2:], mode="nearest-exact")[0] > 0, UNKNOWN, picture)


def shrunk(store: PictureStore, side: int) -> PictureStore:
    """The same pictures as squares of one size, so that a batch is one tensor."""

    def shrink(picture: Tensor) -> Tensor:
        return to_levels(F.interpolate(picture[None].float() / 255, (side, side), mode="bilinear", antialias=True)[0])

    return PictureStore(tuple(tuple(map(shrink, pictures)) for pictures in store.folders), store.shares)
