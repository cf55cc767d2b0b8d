"""The task of learning fracture matching: first what surfaces look like, then which matches are true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.core import InputError
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Count, Weight
from diffassemble.fragments.breaking import scatter
from diffassemble.fragments.descriptors import COUNTERPART_SIGNS, LEVELS
from diffassemble.fragments.model import MATCH_FEATURES, FractureConfig, FractureModels
from diffassemble.training.config import Config, FragmentConfig, TrainingConfig
from diffassemble.training.fracture_examples import (
    MatchExamples,
    SurfaceExamples,
    match_examples,
    surface_examples,
    worn,
)
from diffassemble.training.fragment_data import Broken
from diffassemble.training.fragments import gather
from diffassemble.training.loop import Task
from diffassemble.training.pictures import share_out

_CROWD = 160
"""points of one fracture that are told apart in a step"""


@dataclass(frozen=True)
class FractureDataConfig(FragmentConfig):
    """Which broken objects fracture matching is learnt from, and what of it."""

    learn: Literal["surface", "fits"] = "surface"
    """surface: where the break is, and who fits whom; fits, after that: which fits are true"""
    noise: Weight = 0.0015
    """largest noise that half of the objects gets, as a share of their size"""
    times: Count = 1
    """how often examples are made of each fracture, each time of other points, with other noise and missing pieces"""


@dataclass(frozen=True)
class FractureMatchingTraining(TrainingConfig):
    """How the networks of fracture matching learn."""

    points: Count = 960
    """points of each level, or fits, in a batch, over all processes"""


class FractureMatchingTask(Task):
    """All examples are made at the start, `data.times` of every fracture; then small networks learn from them.

    `data.learn` "surface" teaches where the break is and who fits whom, "fits" then (with --training.start-from) which
    matches are true.
    """

    defaults = Config(FractureConfig(), FractureDataConfig(), FractureMatchingTraining())
    network = FractureModels

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.batch = config.training.points, "points"
        kinds, held_apart = gather(config.data)
        train = [fracture for kind in kinds for fracture in kind]
        if config.data.learn == "fits":
            self.matches, self.held_matches = self._matches(train), self._matches(held_apart)
        else:
            self.surfaces, self.held_surfaces = self._surfaces(train), self._surfaces(held_apart)

    def check(self, config: Config) -> None:
        super().check(config)
        if config.data.learn == "fits" and not config.training.start_from:
            raise InputError("--data.learn fits: needs networks that know surfaces; pass --training.start-from FOLDER")

    def _surfaces(self, fractures: Sequence[Broken]) -> list[tuple[SurfaceExamples, ...]]:
        made = []
        for number, fracture in enumerate(self.config.data.times * list(fractures)):
            generator = seeded(self.config.training.seed, number)
            made.append(surface_examples(fracture.meshes(), generator, self._noise(generator)))
        return made

    def _matches(self, fractures: Sequence[Broken]) -> MatchExamples:
        models = FractureModels.from_pretrained(self.config.training.start_from)
        data = self.config.data
        made = [MatchExamples(np.zeros((0, MATCH_FEATURES), np.float32), np.zeros(0, bool))]
        for number, fracture in enumerate(data.times * list(fractures)):
            generator = seeded(self.config.training.seed, number, 1)
            whole = float(torch.rand(1, generator=generator)) < data.whole_share
            missing = 0.0 if whole else data.missing * float(torch.rand(1, generator=generator))
            puzzle = worn(scatter(fracture.meshes(), generator), self._noise(generator), missing, generator)
            made.append(match_examples(puzzle, models, generator))
        return MatchExamples(np.concatenate([m.numbers for m in made]), np.concatenate([m.true for m in made]))

    def _noise(self, generator: torch.Generator) -> float:
        """None for half of the objects, anything up to the largest for the others."""
        return self.config.data.noise * max(0.0, 2 * float(torch.rand(1, generator=generator)) - 1)

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        assert isinstance(model, FractureModels)
        numbers, weight = share_out(self.config.training.points, rank, world)
        generator = seeded(self.config.training.seed, step, rank)
        if self.config.data.learn == "fits":
            return weight * verification_loss(model, self.matches, len(numbers), generator)
        return weight * surface_loss(model, self.surfaces, len(numbers), generator)

    def validate(self, model: nn.Module) -> dict[str, float]:
        """On objects held apart, in percent: points and matches told right; "score" is their mean."""
        assert isinstance(model, FractureModels)
        model.eval()
        with torch.no_grad():
            scores = self._match_scores(model) if self.config.data.learn == "fits" else self._surface_scores(model)
        model.train()
        return {"score": sum(scores.values()) / max(1, len(scores)), **scores}

    def _match_scores(self, model: FractureModels) -> dict[str, float]:
        if not len(self.held_matches.true):
            return {}
        found = model.verification_logits(torch.from_numpy(self.held_matches.numbers)) > 0
        return {"fits": 100 * float((found.numpy() == self.held_matches.true).mean())}

    def _surface_scores(self, model: FractureModels) -> dict[str, float]:
        scores: dict[str, list[float]] = {}
        for examples in self.held_surfaces:
            for level, one in enumerate(examples):
                if not len(one.broken):
                    continue
                logits = model.segmentation_logits(level, torch.from_numpy(one.features))
                for column, kind in enumerate(("breaks", "balanced")):
                    right = ((logits[:, column] > 0).numpy() == one.broken) * one.weight[:, column]
                    share = 100 * float(right.sum() / one.weight[:, column].sum())
                    scores.setdefault(f"{kind} {level}", []).append(share)
                if len(one.own) > 1:
                    scores.setdefault(f"matches {level}", []).append(matches_found(model, level, one))
        return {name: float(np.mean(values)) for name, values in scores.items()}


def surface_loss(
    model: FractureModels, examples: Sequence[tuple[SurfaceExamples, ...]], count: int, generator: torch.Generator
) -> Float[Tensor, ""]:
    """Cross-entropy of points of several fractures at every level, and of the choice of their matches."""
    total = torch.zeros(())
    for level in range(LEVELS):
        useful = [example[level] for example in examples if len(example[level].broken)]
        chosen = torch.randint(len(useful), (max(1, count // _CROWD),), generator=generator)
        some = [useful[row] for row in chosen.tolist()]
        parts = [torch.randint(len(one.broken), (_CROWD,), generator=generator).numpy() for one in some]
        drawn = [(one.features[p], one.broken[p], one.weight[p]) for one, p in zip(some, parts, strict=True)]
        features, broken, weight = (np.concatenate(columns) for columns in zip(*drawn, strict=True))
        logits = model.segmentation_logits(level, torch.from_numpy(features))
        wanted = torch.from_numpy(broken)[:, None].expand(-1, 2).float()  # both opinions are of the same
        losses = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
        total = total + (losses * torch.from_numpy(weight)).mean()
        total = total + 0.3 * mate_loss(model, level, some, generator)
    return total


def mate_loss(
    model: FractureModels, level: int, examples: Sequence[SurfaceExamples], generator: torch.Generator
) -> Float[Tensor, ""]:
    """Every point has to choose its counterpart among those of the others of its fracture, and be chosen by it."""
    some = [one for one in examples if len(one.own) > 1]
    if not some:
        return torch.zeros(())
    drawn = [torch.randint(len(one.own), (_CROWD,), generator=generator).numpy() for one in some]
    own = torch.from_numpy(np.concatenate([one.own[part] for one, part in zip(some, drawn, strict=True)]))
    other = torch.from_numpy(np.concatenate([one.counterpart[part] for one, part in zip(some, drawn, strict=True)]))
    both = model.describe(level, torch.cat([own * torch.from_numpy(COUNTERPART_SIGNS), other]))
    sizes = [len(part) for part in drawn]
    losses = []
    for sought, seen in zip(both[: len(own)].split(sizes), both[len(own) :].split(sizes), strict=True):
        logits = model.sharpness.exp() * sought @ seen.T
        choice = torch.arange(len(logits))
        losses.append(F.cross_entropy(logits, choice) + F.cross_entropy(logits.T, choice))
    return torch.stack(losses).mean() / 2


def matches_found(model: FractureModels, level: int, one: SurfaceExamples) -> float:
    """Percent of points whose true counterpart is among the best twelve of three hundred."""
    sought = model.describe(level, torch.from_numpy(one.own[:300] * COUNTERPART_SIGNS))
    seen = model.describe(level, torch.from_numpy(one.counterpart[:300]))
    likeness = sought @ seen.T
    return 100 * float(((likeness > likeness.diagonal()[:, None]).sum(1) < 12).float().mean())


def verification_loss(
    model: FractureModels, examples: MatchExamples, count: int, generator: torch.Generator
) -> Float[Tensor, ""]:
    """Cross-entropy of matches being true."""
    rows = torch.randint(len(examples.true), (count,), generator=generator).numpy()
    logits = model.verification_logits(torch.from_numpy(examples.numbers[rows]))
    return F.binary_cross_entropy_with_logits(logits, torch.from_numpy(examples.true[rows]).float())
