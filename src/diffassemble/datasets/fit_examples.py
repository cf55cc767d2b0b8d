"""Examples for the network that verifies fits: what the search finds, and whether it is true."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float32

from diffassemble.compatibility.fracture.clusters import STAY, Cluster, Pose, composed
from diffassemble.compatibility.fracture.contact import undone
from diffassemble.compatibility.fracture.fits import level_for, match
from diffassemble.compatibility.fracture.judges import Judges
from diffassemble.compatibility.fracture.layers import LEVELS
from diffassemble.compatibility.fracture.pair_search import Effort
from diffassemble.compatibility.fracture.verify import VERIFIED
from diffassemble.compatibility.mesh import prepare
from diffassemble.cutting.damage import surviving
from diffassemble.datasets.surface_examples import jittered
from diffassemble.puzzle import Puzzle

# A fit is true if it is turned by at most so many degrees, and off by at most so many spacings of level 0.
_DEGREES, _OFF = 5.0, 2.5


@dataclass(frozen=True)
class FitExamples:
    """Numbers of fits (`compatibility.fracture.verify`), and whether they are true."""

    numbers: Float32[np.ndarray, "m v"]
    true: Bool[np.ndarray, "m"]

    @staticmethod
    def none() -> FitExamples:
        """No examples."""
        return FitExamples(np.zeros((0, VERIFIED), np.float32), np.zeros(0, bool))


def worn(puzzle: Puzzle, noise: float, missing: float, generator: torch.Generator) -> Puzzle:
    """The puzzle without a share of its fragments, though two stay, the others as a noisy scanner would see them.

    `noise` is a share of the size of the whole.
    """
    left = puzzle.reordered(surviving(len(puzzle), min(missing, max(0.0, 1 - 2 / len(puzzle))), generator))
    meshes = jittered(left.fragments.meshes, noise, generator)
    return replace(left, pieces=replace(left.fragments, meshes=tuple(meshes)))


def fit_examples(puzzle: Puzzle, judges: Judges, generator: torch.Generator, matches: int = 14) -> FitExamples:
    """Search for fits of random pairs, every other time against a cluster that truly belongs together.

    Of two or three fragments there are fewer matches.
    """
    assert puzzle.truth is not None
    seed = int(torch.randint(1 << 30, (1,), generator=generator))
    chance = np.random.Generator(np.random.PCG64(seed))
    fragments = prepare(puzzle.fragments, judges, seed)
    truth = np.concatenate([puzzle.truth.rotation.flatten(1).numpy(), puzzle.truth.translation.numpy()], 1)
    nothing = FitExamples.none()
    numbers, true = [nothing.numbers], [nothing.true]
    for number in range(min(matches, 4 * len(fragments))):
        order = chance.permutation(len(fragments))
        size = 1 if number % 2 else int(chance.integers(1, len(fragments)))
        first = Cluster(fragments, {int(order[-1]): STAY})
        second = Cluster(fragments, {int(piece): truth[piece].astype(np.float64) for piece in order[:size]})
        level = min(level_for(first, second) + int(chance.random() < 0.2), LEVELS - 1)
        wanted = truth[order[-1]].astype(np.float64)
        if size == 1:
            wanted = composed(undone(truth[order[0]].astype(np.float64)), wanted)
            second = Cluster(fragments, {int(order[0]): STAY})
        fits = match(first, second, level, Effort(), judges, seed + number)
        middle = fragments[order[-1]].layers.levels[0].points.mean(0)
        numbers += [fit.numbers[None] for fit in fits]
        true += [np.array([is_true(fit.pose, wanted, middle, fragments[0].spacing)]) for fit in fits]
    return FitExamples(np.concatenate(numbers), np.concatenate(true))


def is_true(pose: Pose, wanted: Pose, middle: Float32[np.ndarray, "3"], spacing: float) -> bool:
    """Whether a pose is the wanted one, up to what refinement mends."""
    cosine = ((pose[:9] * wanted[:9]).sum() - 1) / 2
    off = (pose[:9] - wanted[:9]).reshape(3, 3) @ middle + pose[9:] - wanted[9:]
    near = np.linalg.norm(off) < _OFF * spacing
    return bool(np.degrees(np.arccos(np.clip(cosine, -1, 1))) < _DEGREES and near)
