"""The task of learning which contacts of free outlines are true: four judges, one after the other.

Seeds are judged first; what is refined with that judge teaches the judge of contacts, what that keeps the judge of
contacts among their rivals, and contacts with third pieces the judge of those that follow from other joins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float32, Int64
from torch import Tensor, nn

from diffassemble.assembly.pose_graph import complex_of
from diffassemble.core import Matches, Puzzle
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Batch, Cases, Positive, Share
from diffassemble.core.thresholds import SURE
from diffassemble.outlines import arcs
from diffassemble.outlines.arcs import ArcConfig, ArcModel, Judge, unskewed
from diffassemble.outlines.growth import OutlineOverlap
from diffassemble.outlines.rims import Rims, rims_of
from diffassemble.training.config import Config, TrainingConfig
from diffassemble.training.data import RecordedConfig, recorded_puzzles, share_out
from diffassemble.training.loop import Task

JUDGES = ("seeds", "contacts", "rivals", "following")


@dataclass(frozen=True)
class ArcDataConfig(RecordedConfig):
    """Puzzles of free outlines whose places are known, and which poses of their pieces count as true."""

    true_place: Positive = 14.0
    """largest distance from the true place, in working pixels"""
    true_turn: Positive = 0.105
    """largest angle from the true one, in radians"""
    silhouettes: Share = 1 / 6
    """share of puzzles whose colours are ignored"""
    wrong_seeds: Cases = 5
    """seeds that are judged of a pair none of whose seeds is true"""


@dataclass(frozen=True)
class ArcTraining(TrainingConfig):
    """How the judges learn."""

    examples: Batch = 2048
    """contacts in a batch, over all processes"""
    shares: tuple[Share, Share, Share, Share] = (0.25, 0.33, 0.17, 0.25)
    """shares of the steps in which seeds, contacts, rivals and following contacts are learnt"""

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from super().conflicts()
        if not np.isclose(sum(self.shares), 1):
            yield "shares", "four numbers whose sum is 1"


class Lesson(NamedTuple):
    """The rims of a puzzle, and its pieces' true poses: turns and places as complex numbers, in working pixels."""

    rims: Rims
    turn: np.ndarray
    place: np.ndarray

    @classmethod
    def of(cls, puzzle: Puzzle, coloured: bool) -> Lesson:
        """The lesson of a puzzle whose truth is known."""
        assert puzzle.truth is not None
        rims = rims_of(replace(puzzle.outlines, coloured=coloured and puzzle.outlines.coloured))
        turn, place = complex_of(puzzle.truth)
        return cls(rims, turn, place * rims.scale)


class Examples(NamedTuple):
    """Numbers that describe contacts, and whether they are true."""

    numbers: Float32[np.ndarray, "m f"]
    true: Bool[np.ndarray, "m"]


class ArcTask(Task):
    """Cross-entropy of contacts of recorded puzzles being true; the judge of rivals on those held apart."""

    defaults = Config(
        ArcConfig(),
        ArcDataConfig(),
        ArcTraining(steps=6000, learning_rate=3e-3, weight_decay=1e-3, average=0.99, validate_every=1500, warmup=100),
    )
    network = ArcModel
    unit = "examples"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        train, held_apart = recorded_puzzles(config.data)
        every = round(1 / config.data.silhouettes) if config.data.silhouettes else 0
        self.lessons, self.held_apart = (
            [Lesson.of(puzzle, not every or number % every > 0) for number, puzzle in enumerate(puzzles, 1)]
            for puzzles in (train, held_apart)
        )
        self.learnt, self.examples = "", Examples(np.zeros((0, 0), np.float32), np.zeros(0, bool))

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        assert isinstance(model, ArcModel)
        training = self.config.training
        done = np.cumsum(training.shares)[:-1] * training.steps
        name = JUDGES[int(np.searchsorted(done, step, "right"))]
        judge: Judge = getattr(model, name)
        if self.learnt != name:
            # Examples follow from earlier judges, which learn no more, so a resumed run finds the same.
            self.learnt, self.examples = name, self._examples(model, name)
            given = self._inputs(name, torch.from_numpy(self.examples.numbers))
            judge.mean.copy_(given.mean(0))
            judge.deviation.copy_(given.std(0) + 1e-3)
        numbers, weight = share_out(training.examples, rank, world)
        count = len(self.examples.true)
        if not count:
            return 0.0 * judge(judge.mean[None]).sum()
        rows = torch.randint(count, (len(numbers),), generator=seeded(training.seed, step, rank))
        true = torch.from_numpy(self.examples.true).float()
        logits = judge(self._inputs(name, torch.from_numpy(self.examples.numbers)[rows]).to(judge.mean.device))
        # Following contacts are judged by odds of equally many true and false ones: evidence that adds up.
        share = true.mean().clamp(1e-3, 1 - 1e-3)
        balance = torch.where(true > 0, 0.5 / share, 0.5 / (1 - share)) if name == "following" else torch.ones(count)
        device = logits.device
        return weight * F.binary_cross_entropy_with_logits(logits, true[rows].to(device), balance[rows].to(device))

    def _inputs(self, name: str, numbers: Float[Tensor, "m f"]) -> Float[Tensor, "m f"]:
        return numbers if name == "rivals" else unskewed(numbers)

    def _examples(self, model: ArcModel, name: str) -> Examples:
        """Examples for a judge, of all lessons together."""
        made = [self._examples_of(lesson, number, model, name) for number, lesson in enumerate(self.lessons)]
        return Examples(*(np.concatenate(parts) for parts in zip(*made, strict=True)))

    def _examples_of(self, lesson: Lesson, number: int, model: ArcModel, name: str) -> Examples:
        if name == "seeds":
            return self._seeds(lesson, np.random.default_rng((self.config.training.seed, number)), model)
        found = arcs.find_refined(lesson.rims, model)
        if name == "contacts":
            return Examples(found.features, self.is_true(lesson, found.first, found.second, found.poses))
        kept = arcs.best_of_each(found._replace(logit=model.judge("contacts", found.features)), arcs.ARC_SEARCH.kept)
        true = self.is_true(lesson, kept.first, kept.second, kept.poses)
        if name == "rivals":
            return Examples(arcs.rivalry(kept, len(lesson.turn)), true)
        return _following(lesson, model, kept, true)

    def is_true(
        self,
        lesson: Lesson,
        first: Int64[np.ndarray, "m"],
        second: Int64[np.ndarray, "m"],
        poses: Float32[np.ndarray, "m 4"],
    ) -> Bool[np.ndarray, "m"]:
        """Which poses of the first in the frame of the second are true."""
        back = np.conj(lesson.turn[second])
        apart = np.abs(poses[:, 2] + 1j * poses[:, 3] - back * (lesson.place[first] - lesson.place[second]))
        turned = np.angle((poses[:, 0] + 1j * poses[:, 1]) * np.conj(back * lesson.turn[first]))
        return (apart < self.config.data.true_place) & (np.abs(turned) < self.config.data.true_turn)

    def _seeds(self, lesson: Lesson, random: np.random.Generator, model: ArcModel) -> Examples:
        """All seeds of pairs of which some are true, a few of the others."""
        numbers, true = [], []
        for config in arcs.ARC_SEARCH.seeds:
            found = arcs.stretches(lesson.rims, config)
            for first in range(len(lesson.turn) - 1):
                for second, poses in enumerate(arcs.seed_poses(found, first, lesson.rims, config), first + 1):
                    one, two = np.full(len(poses), first), np.full(len(poses), second)
                    right = self.is_true(lesson, one, two, poses)
                    few = random.permutation(len(poses))[: self.config.data.wrong_seeds]
                    chosen = np.arange(len(poses)) if right.any() else few
                    seen = arcs.judged(lesson.rims, model, "seeds", one[chosen], two[chosen], poses[chosen])
                    numbers.append(seen.features)
                    true.append(right[chosen])
        return Examples(np.concatenate(numbers), np.concatenate(true))

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Of contacts of puzzles held apart: how many are sure, and the percentage of these that is true.

        "score" is the probability that the judge of rivals gives the truth, in percent, in the geometric mean.
        """
        assert isinstance(model, ArcModel)
        made = [self._examples_of(lesson, number, model, "rivals") for number, lesson in enumerate(self.held_apart)]
        if not sum(len(one.true) for one in made):
            return {"score": 0.0}
        numbers, true = (np.concatenate(parts) for parts in zip(*made, strict=True))
        logits = torch.from_numpy(model.judge("rivals", numbers))
        loss = F.binary_cross_entropy_with_logits(logits, torch.from_numpy(true).float())
        sure = (logits.sigmoid() >= SURE).numpy()
        right = 100 * float(true[sure].mean()) if sure.any() else 0.0
        return {"score": 100 * float((-loss).exp()), "sure": float(sure.sum()), "sure, right": right}


def _following(lesson: Lesson, model: ArcModel, found: arcs.Candidates, true: Bool[np.ndarray, "m"]) -> Examples:
    """Contacts with third pieces, at their true poses, that follow from candidates."""
    count, overlap = len(lesson.turn), OutlineOverlap(lesson.rims, model, Matches.none(2))
    numbers, right = [], []
    for first, second, pose, is_true in zip(found.first, found.second, found.poses, true, strict=True):
        turn = lesson.turn[second] * complex(pose[0], pose[1])
        place = lesson.turn[second] * complex(pose[2], pose[3]) + lesson.place[second]
        for third in range(count):
            reach = overlap.radius[[first, third]].sum() + 10
            if third in (first, second) or abs(place - lesson.place[third]) > reach:
                continue
            back = np.conj(lesson.turn[third])
            pose = overlap.settled(int(first), third, back * turn, back * (place - lesson.place[third]))
            if pose is None:
                continue
            features, _ = arcs.contacts_at(lesson.rims, np.array([first]), np.array([third]), pose)
            if features[0, 0] >= overlap.config.shortest:
                numbers.append(features[0])
                right.append(is_true)
    return Examples(np.array(numbers, np.float32).reshape(-1, found.features.shape[1]), np.array(right, bool))
