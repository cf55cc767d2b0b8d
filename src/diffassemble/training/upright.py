"""The task of learning which way is up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Count
from diffassemble.squares.upright import Upright, UprightConfig, upright_turn
from diffassemble.training.config import Config, PictureConfig, TrainingConfig
from diffassemble.training.loop import Task
from diffassemble.training.pictures import UNKNOWN, Variation, load_pictures, load_square, share_out, vary

FIRST = Variation(smallest_crop=0.88, tilt=3.0, light=0.10, holed_share=0.12)
LAST = Variation(smallest_crop=0.70, tilt=6.0, light=0.22, holed_share=0.25)
"""Variation grows from the first to the last: plain pictures teach fastest, varied ones keep from learning by heart."""

SMOOTHING = 0.03


@dataclass(frozen=True)
class UprightTraining(TrainingConfig):
    """How the upright classifier learns."""

    pictures: Count = 16
    """pictures in a batch, over all processes; each is looked at in its four turns"""


class UprightTask(Task):
    """Upright pictures against their own other turns; accuracy on pictures held apart, whole and with holes."""

    defaults = Config(UprightConfig(), PictureConfig(), UprightTraining())
    network = Upright

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.batch = config.training.pictures, "pictures"
        self.store, self.held_apart = load_pictures(config.data, partial(load_square, side=2 * config.model.size))

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        training = self.config.training
        numbers, weight = share_out(training.pictures, rank, world)
        generator = seeded(training.seed, step, rank)
        pictures = torch.stack([self.store.draw(generator) for _ in numbers])
        variation = FIRST.towards(LAST, step / training.steps)
        varied = vary(pictures, self.config.model.size, variation, generator)
        logits = model(varied.to(next(model.parameters()).device))
        target = torch.zeros(len(pictures), dtype=torch.long, device=logits.device)
        return weight * F.cross_entropy(logits.float(), target, label_smoothing=SMOOTHING)

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
    device = next(model.parameters()).device
    right = sum(upright_turn(model, picture.to(device)) == 0 for picture in pictures)
    return 100 * right / max(1, len(pictures))


def with_lost_cells(picture: Float[Tensor, "3 H W"], seed: int) -> Float[Tensor, "3 H W"]:
    """The picture without 30 % of its 6×6 cells, at random."""
    lost = torch.rand(1, 1, 6, 6, generator=seeded(79, seed)) < 0.3
    return torch.where(F.interpolate(lost.float(), picture.shape[-2:], mode="nearest-exact")[0] > 0, UNKNOWN, picture)
