"""Several chains of poses denoised at once, and the agreement of their samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.core import InputError, Locks, Poses, Puzzle
from diffassemble.diffusion.spaces import sample
from diffassemble.network.batch import PuzzleBatch, pack
from diffassemble.network.denoiser import Denoiser, PoseNetwork, Prediction, Samples


@dataclass(frozen=True)
class SamplingConfig:
    """How many samples are drawn, and when they agree."""

    most_pairs: int = 1_000_000
    """pairs of pieces that attend to each other in all samples of a puzzle"""
    most_each: int = 900
    """pairs that a piece of a sparse graph costs"""
    near: float = 0.1
    """largest distance of a piece from the mean of the samples at which a sample agrees, in lengths of the whole"""
    twist: float = 30.0
    """the same for rotations, in degrees"""
    uniform: float = 0.03
    """share of a uniform distribution that is mixed into one over cells"""


DEFAULT = SamplingConfig()


def sample_count(wanted: int, pieces: int, config: SamplingConfig = DEFAULT) -> int:
    """How many samples to draw: large puzzles get fewer, at least one."""
    return min(wanted, max(1, config.most_pairs // (pieces * min(pieces, config.most_each))))


def denoise(
    model: PoseNetwork,
    batch: PuzzleBatch,
    steps: int,
    samples: int,
    generator: torch.Generator,
    eta: float = 0.0,
    locks: Locks | None = None,
) -> Iterator[tuple[Samples, Prediction]]:
    """Yield (x_t, predicted x_0) of `samples` chains for all puzzles of the batch, from sampled noise to time 0.

    The network may be on another device than the batch, to which its predictions are moved. For locked pieces the
    prediction is the locked pose, so that their x_t is at every step that pose under noise.
    """
    device, count = next(model.parameters()).device, len(batch.puzzle)
    with torch.no_grad():
        condition = model.condition(batch.to(device))
    start = model.space.prior((count, samples), generator)
    settled = torch.empty(0) if locks is None else model.space.to_vector(locks.poses)
    last: list[Prediction] = []

    def predict(noisy: Tensor, time: int) -> Tensor:
        with torch.no_grad():
            times = torch.full((count, samples), time, device=device)
            last[:] = [model.predict(noisy.to(device), times, condition, *last)]
            clean = _finite(model.space.clean(last[0].vectors)).to(noisy.device)
            return clean if locks is None else torch.where(locks.held[:, None, None], settled[:, None], clean)

    for noisy, clean in sample(predict, start, model.space, model.schedule, steps, generator, eta):
        yield noisy, replace(last[0], vectors=clean)


def _finite(values: Tensor) -> Tensor:
    """The same numbers; those of a network with damaged weights are refused."""
    if not bool(values.isfinite().all()):
        raise InputError("the model answers with NaN or infinite numbers: its weights are damaged; download it again")
    return values


@torch.no_grad()
def alone_chances(model: Denoiser, puzzle: Puzzle) -> Float[Tensor, "n c 4"]:
    """The log probability of every cell and turn by each piece alone; for the head "cells"."""
    device = next(model.parameters()).device
    logits = _finite(model.alone_logits(pack([puzzle]).to(device))[:, 0].cpu())
    return logits.flatten(1).log_softmax(-1).view_as(logits)


@torch.no_grad()
def chances_beside(
    model: Denoiser,
    batch: PuzzleBatch,
    locks: Locks,
    samples: int,
    steps: int,
    generator: torch.Generator,
    config: SamplingConfig = DEFAULT,
) -> Float[Tensor, "n c 4"]:
    """The log probability of every cell and turn given locked pieces, the mean over some samples."""
    *_, (_, found) = denoise(model, batch, steps, samples, generator, locks=locks)
    assert found.logits is not None, "this model does not score cells"
    probability = found.logits.flatten(2).softmax(-1).mean(1)
    mixed = torch.lerp(probability, torch.full_like(probability, 1 / probability.shape[1]), config.uniform)
    return mixed.log().view_as(found.logits[:, 0])


def average(samples: Sequence[Poses], config: SamplingConfig = DEFAULT) -> tuple[Poses, Float[Tensor, "n"]]:
    """The mean of all samples (chordal for rotations), and per piece the share of samples that agree with it."""
    import roma

    if len(samples) == 1:
        return samples[0], torch.ones(len(samples[0]))
    rotation = roma.special_procrustes(torch.stack([sample.rotation for sample in samples]).mean(0))
    mean = Poses(rotation, torch.stack([sample.translation for sample in samples]).mean(0))
    agreed = torch.zeros(len(mean))
    for one in samples:
        moved = (mean.translation - one.translation).norm(dim=-1)
        turned = roma.rotmat_geodesic_distance(mean.rotation, one.rotation)
        agreed += (moved < config.near) & (turned.rad2deg() < config.twist)
    return mean, agreed / len(samples)
