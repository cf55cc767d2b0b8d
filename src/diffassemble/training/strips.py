"""The task of learning which long sides of strips continue each other, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from diffassemble.core import Puzzle
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Count
from diffassemble.outlines.strip_sides import DEPTH, Comparison, StripModel, StripModelConfig, read_sides, strip_frame
from diffassemble.outlines.strips import balanced
from diffassemble.training.config import Config, TrainingConfig
from diffassemble.training.data import RecordedConfig, recorded_puzzles, share_out, uniform
from diffassemble.training.loop import Task


@dataclass(frozen=True)
class StripTraining(TrainingConfig):
    """How the comparison of strips learns."""

    pages: Count = 1
    """pages in a batch, over all processes"""
    together: Count = 10
    """strips of a page that are compared in one step"""


class Page(NamedTuple):
    """Bands of pixels along the sides of a page's strips, their lengths, and the strips' places from the left."""

    bands: Float[Tensor, "n 2 channels l"]
    lengths: Int[Tensor, "n"]
    position: Int[Tensor, "n"]
    turned: Bool[Tensor, "n"]

    @classmethod
    def of(cls, puzzle: Puzzle) -> Page:
        """The sides of a shredded page whose truth is known."""
        assert puzzle.truth is not None
        pieces = puzzle.outlines
        sides = read_sides(pieces, [strip_frame(contour) for contour in pieces.contours])
        position = puzzle.truth.translation[:, 0].argsort().argsort()
        return cls(sides.bands, sides.lengths, position, puzzle.truth.rotation[:, 0, 0] < 0)

    def partners(self) -> Int[Tensor, "s"]:
        """The true neighbour of every side, or as many as there are sides for none."""
        found = torch.full((2 * len(self.position),), 2 * len(self.position))
        for one, other in pairwise(self.position.argsort().tolist()):
            right, left = 2 * one + int(self.turned[one]), 2 * other + 1 - int(self.turned[other])
            found[right], found[left] = left, right
        return found

    def part(self, together: int, generator: torch.Generator) -> Page:
        """Some strips that belong side by side, most often a stretch of their length, in other contrast.

        In three of ten cases the course of the borders is hidden, in one of ten all but that.
        """
        order = self.position.argsort()
        first = int(torch.randint(max(1, len(order) - together + 1), (), generator=generator))
        chosen = order[first : first + together]
        bands, lengths, turned = self.bands[chosen].clone(), self.lengths[chosen], self.turned[chosen]
        if uniform(0.0, 1.0, generator) < 0.8:
            shortest = int(lengths.min())
            count = max(1, int(shortest * uniform(0.3, 1.0, generator)))
            top = int(torch.randint(shortest - count + 1, (), generator=generator))
            cut = []
            for own, length, upside_down in zip(bands, lengths.tolist(), turned.tolist(), strict=True):
                low = length - top - count if upside_down else top
                cut.append(torch.stack([own[0, :, low : low + count], own[1, :, length - low - count : length - low]]))
            bands, lengths = torch.stack(cut), torch.full_like(lengths, count)
        if uniform(0.0, 1.0, generator) < 0.5:
            bands[:, :, :DEPTH] *= uniform(0.7, 1.3, generator)
        hidden = uniform(0.0, 1.0, generator)
        if hidden < 0.3:
            bands[:, :, DEPTH + 2 : DEPTH + 4] = 0
        elif hidden < 0.4:
            bands[:, :, : DEPTH + 2] = 0
        return Page(bands, lengths, self.position[chosen], turned)


class StripTask(Task):
    """Every side has to find its neighbour among all sides of some strips, or that it has none."""

    defaults = Config(
        StripModelConfig(),
        RecordedConfig(held_apart=40),
        StripTraining(steps=2000, learning_rate=3e-3, weight_decay=1e-3, average=0.99, decay=0.9, validate_every=500),
    )
    network = StripModel
    unit = "pages"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.pages, self.held_apart = (list(map(Page.of, puzzles)) for puzzles in recorded_puzzles(config.data))

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        training = self.config.training
        numbers, weight = share_out(training.pages, rank, world)
        device, losses = next(model.parameters()).device, []
        for number in numbers:
            generator = seeded(training.seed, step, number)
            page = self.pages[int(torch.randint(len(self.pages), (), generator=generator))]
            part = page.part(training.together, generator)
            compared = model(part.bands.to(device), part.lengths.to(device))
            choices = torch.cat([compared.fits, compared.alone.expand(len(compared.fits), 1)], 1)
            losses.append(F.cross_entropy(choices, part.partners().to(device)))
        return weight * torch.stack(losses).mean()

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Percent of sides of pages held apart that rank their neighbour first; fits the model's calibration."""
        assert isinstance(model, StripModel)
        logits, truth, ranked = [], [], []
        for page in self.held_apart:
            compared = Comparison(*(part.cpu() for part in model(page.bands, page.lengths)))
            partners = page.partners()
            one, other = torch.triu_indices(len(partners), len(partners), 1)
            logits.append(balanced(compared)[one, other])
            truth.append((partners[one] == other).float())
            inner = partners < len(partners)
            ranked.append((compared.fits.argmax(1) == partners)[inner].float())
        if not ranked:
            return {"score": 0.0}
        model.odds.copy_(_calibration(torch.cat(logits), torch.cat(truth)))
        return {"score": 100 * float(torch.cat(ranked).mean())}


def _calibration(logits: Float[Tensor, "m"], true: Float[Tensor, "m"]) -> Float[Tensor, "2"]:
    """Shift and slope that calibrate log odds, by least cross-entropy."""
    numbers = torch.tensor([0.0, 1.0], requires_grad=True)
    solver = torch.optim.LBFGS([numbers], max_iter=100)

    @torch.enable_grad()
    def loss() -> Tensor:
        solver.zero_grad()
        value = F.binary_cross_entropy_with_logits(numbers[0] + numbers[1] * logits, true)
        value.backward()
        return value

    solver.step(loss)
    return numbers.detach()
