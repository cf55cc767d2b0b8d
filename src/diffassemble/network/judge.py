"""Samples: chains of poses denoised at once, their agreement, and assemblies from what they score.

Relative to pieces whose poses are known, each sample reads other matches; `judge` then gives better probabilities of
all matches for every sample. Spanning trees along the most probable ones join the pieces to those that are locked, and
the tree that agrees with most evidence is the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diffassemble.core import InputError, Locks, Matches, Poses, Puzzle
from diffassemble.diffusion.rotations import angle_between, nearest_rotation
from diffassemble.diffusion.spaces import sample
from diffassemble.network.batch import PuzzleBatch, pack, pack_copies, with_matches
from diffassemble.network.denoiser import Denoiser, PoseNetwork, Prediction, Samples
from diffassemble.network.evidence import THRESHOLDS, grow_clusters, residuals, settled, shown_evidence


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


SAMPLING = SamplingConfig()


def sample_count(wanted: int, pieces: int, config: SamplingConfig = SAMPLING) -> int:
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
    config: SamplingConfig = SAMPLING,
) -> Float[Tensor, "n c 4"]:
    """The log probability of every cell and turn given locked pieces, the mean over some samples."""
    *_, (_, found) = denoise(model, batch, steps, samples, generator, locks=locks)
    assert found.logits is not None, "this model does not score cells"
    probability = found.logits.flatten(2).softmax(-1).mean(1)
    mixed = torch.lerp(probability, torch.full_like(probability, 1 / probability.shape[1]), config.uniform)
    return mixed.log().view_as(found.logits[:, 0])


def average(samples: Sequence[Poses], config: SamplingConfig = SAMPLING) -> tuple[Poses, Float[Tensor, "n"]]:
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


@dataclass(frozen=True)
class AssemblyConfig:
    """How samples become an assembly."""

    omitted: float = 0.25
    """share of the matches that all samples but the first do without"""
    turn: float = 0.15
    """two samples agree on a piece if its rotations differ by less than this, in radians"""
    shift: float = 0.05
    """the same for places, in units"""
    tolerance: float = 1.5
    """a sample agrees with a match within so many times these"""
    rival: float = 0.1
    """least probability of a match that counts against those it contradicts"""
    draws: int = 512
    """draws of which matches are true"""


DEFAULT = AssemblyConfig()


def corrupt_matches(matches: Matches, wrong: float, missing: float, generator: torch.Generator) -> Matches:
    """Matches of which a share is missing and a share has wrong poses at the same distance, both ways alike."""
    half = len(matches) // 2
    mirrored = torch.equal(matches.first[:half], matches.second[half:]) and 2 * half == len(matches)
    assert mirrored, "matches are listed one way, then the other way round"
    kept = (torch.rand(half, generator=generator) >= missing).nonzero()[:, 0]
    replaced = (torch.rand(half, generator=generator) < wrong)[kept]
    forth = matches[kept].pose
    # Any rotation, and a place at the same distance in any direction.
    count, dimension = forth.translation.shape
    rotation = nearest_rotation(torch.randn(count, dimension, dimension, generator=generator))
    direction = F.normalize(torch.randn(count, dimension, generator=generator), dim=-1)
    place = forth.translation.norm(dim=-1)[:, None] * direction
    rotation = torch.where(replaced[:, None, None], rotation, forth.rotation)
    forth = Poses(rotation, torch.where(replaced[:, None], place, forth.translation))
    back = forth.inverse()
    both = matches[torch.cat([kept, kept + half])]
    rotation = torch.cat([forth.rotation, back.rotation])
    return replace(both, pose=Poses(rotation, torch.cat([forth.translation, back.translation])))


def anchored(weight: Float[Tensor, "n"], locks: Locks | None, dimension: int) -> tuple[Locks, Poses]:
    """Fix the gauge: the locked poses relative to one of the pieces, and the pose of that one, repeated for all pieces.

    It is the one of most weight: of those that are locked, or of all, which is then locked as it was given.
    """
    count = len(weight)
    if locks is None:
        alone = torch.arange(count) == int(weight.argmax())
        return Locks(alone, Poses.identity(count, dimension)), Poses.identity(count, dimension)
    first = int(weight.masked_fill(~locks.held, -1).argmax())
    own = locks.poses[torch.full((count,), first)]
    return Locks(locks.held, own.inverse() @ locks.poses), own


def denoised(
    model: PoseNetwork,
    puzzle: Puzzle,
    matches: Matches,
    steps: int,
    samples: int,
    eta: float,
    generator: torch.Generator,
    config: AssemblyConfig = DEFAULT,
) -> Iterator[tuple[float, Poses, Poses]]:
    """Yield after every reverse step the share done, x_t of the first sample, and X₀ of all samples (k·n poses)."""
    count, space = len(puzzle), model.space
    others = sample_count(samples, count) - 1
    by_sample = [matches, *(corrupt_matches(matches, 0.0, config.omitted, generator) for _ in range(others))]
    batch = pack_copies(puzzle, by_sample)
    total = len(model.schedule.visited(steps))
    chain = denoise(model, batch, steps, 1, generator, eta, batch.locks)
    for number, (noisy, predicted) in enumerate(chain, 1):
        yield number / total, space.to_poses(noisy[:count, 0]), space.to_poses(predicted.vectors[:, 0])


@torch.no_grad()
def judge(
    model: PoseNetwork,
    puzzle: Puzzle,
    matches: Matches,
    found: Poses,
    unit: Float[Tensor, "n"],
    config: AssemblyConfig = DEFAULT,
) -> tuple[list[Matches], Matches]:
    """The matches with the probabilities that the network gives them, for each of k samples (k·n poses), and for all.

    `puzzle` has the locks that the samples kept. A network without verdicts leaves the matches as they are, and prefers
    in each sample those that agree with its poses.
    """
    count = len(puzzle)
    rotation, place = (part.unflatten(0, (-1, count)).transpose(0, 1) for part in (found.rotation, found.translation))
    if getattr(model, "verdicts", None) is not None:
        device, half = next(model.parameters()).device, len(matches) // 2
        condition = model.condition(with_matches(pack([puzzle]), [matches]).to(device))
        state = model.space.to_vector(found).unflatten(0, (-1, count)).transpose(0, 1).contiguous()
        times = torch.ones(state.shape[:2], dtype=torch.long, device=device)
        verdict = model.predict(state.to(device), times, condition).verdict
        assert verdict is not None
        chance = torch.sigmoid((verdict[:half] + verdict[half:]) / 2).repeat(2, 1).cpu()
        return [with_probability(matches, one) for one in chance.unbind(1)], with_probability(matches, chance.mean(1))
    assert puzzle.locks is not None
    angle, far = residuals(matches, *settled(matches, rotation, place, puzzle.locks, unit))
    near = config.tolerance * config.turn, config.tolerance * config.shift * unit[matches.first, None]
    ranks = 0.5 * matches.probability[:, None] + 0.5 * ((angle < near[0]) & (far < near[1]))
    return [with_probability(matches, rank) for rank in ranks.unbind(1)], matches


def with_probability(matches: Matches, probability: Float[Tensor, "m"]) -> Matches:
    """The same matches with other probabilities."""
    return replace(matches, evidence=torch.cat([probability[:, None], matches.evidence[:, 1:]], 1))


def assembled(
    matches: Matches,
    judged: tuple[Sequence[Matches], Matches],
    held: Locks,
    unit: Float[Tensor, "n"],
    locked: bool = True,
    config: AssemblyConfig = DEFAULT,
) -> tuple[Poses, Float[Tensor, "n"]]:
    """The assembly by the matches as judged, and probabilities of its pieces relative to what is held or largest."""
    by_sample, overall = judged
    # Matches less probable than clusters take are still better than none.
    probable = [with_probability(one, one.probability.clamp(min=THRESHOLDS[-1])) for one in by_sample]
    trees = [tree_poses(one, held) for one in probable]
    worth = torch.stack([shown_evidence(matches, tree.rotation, tree.translation, unit)[0] for tree in trees])
    answer = trees[int(worth.argmax())]
    alike = [
        (angle_between(tree.rotation, answer.rotation) < config.turn)
        & ((tree.translation - answer.translation).norm(dim=-1) < config.shift * unit)
        for tree in trees
    ]
    agreed = (worth.softmax(0)[:, None] * torch.stack(alike)).sum(0)
    reference = held.held
    if not locked:
        shown = overall[agreeing(overall, answer, unit, config).nonzero()[:, 0]]
        reference = torch.arange(len(unit)) == grow_clusters(shown, len(unit), apart=0.0)[1].sizes().argmax()
    # By pairs alone, and by the whole graph.
    evidence = [matches] if overall is matches else [matches, overall]
    return answer, agreed * torch.stack([linked(one, answer, reference, unit, config) for one in evidence]).amin(0)


def tree_poses(matches: Matches, held: Locks) -> Poses:
    """Poses along the most probable matches from the pieces that are held; others stay in the middle."""
    count, dimension = held.poses.translation.shape
    poses = Poses.identity(count, dimension)
    if len(matches) == 0:
        return held.applied(poses)
    clusters = grow_clusters(matches, count, apart=0.0)[-1]
    for root in held.held.nonzero()[:, 0].tolist():
        members = (clusters.label == clusters.label[root]).nonzero()[:, 0]
        at = torch.full_like(members, root)
        placed = held.poses[at] @ clusters.frame[at].inverse() @ clusters.frame[members]
        poses.rotation[members], poses.translation[members] = placed.rotation, placed.translation
    return held.applied(poses)


def agreeing(
    matches: Matches, poses: Poses, unit: Float[Tensor, "n"], config: AssemblyConfig = DEFAULT
) -> Bool[Tensor, "m"]:
    """Which matches an assembly agrees with."""
    angle, far = residuals(matches, poses.rotation[:, None], poses.translation[:, None])
    return ((angle < 2 * config.turn) & (far < 2 * config.shift * unit[matches.first, None]))[:, 0]


def linked(
    matches: Matches,
    poses: Poses,
    held: Bool[Tensor, "n"],
    unit: Float[Tensor, "n"],
    config: AssemblyConfig = DEFAULT,
) -> Float[Tensor, "n"]:
    """The probability that true matches connect each piece to those that are held, by Monte Carlo over matches.

    Every match that agrees with the poses is true with its probability, normalised with those of the same two pieces
    that do not agree, and independent of others; so loops are more certain than chains. A match of two pieces that
    contradicts the poses lowers all links by which they are connected: not all of them can be true with it.
    """
    count = len(held)
    shown = agreeing(matches, poses, unit, config)
    chance = matches.probability.clamp(1e-6, 0.995)
    odds = chance / (1 - chance)
    pair = matches.first * count + matches.second
    against = odds.where(~shown & (chance >= config.rival), 0.0)
    rivals = torch.zeros(count * count).index_add(0, pair, against)
    link = torch.where(shown, odds / (1 + odds + rivals[pair]), 0.0)
    best = torch.zeros(count * count).scatter_reduce(0, pair, link, "amax").view(count, count)
    best, rivals = (torch.maximum(both, both.T) for both in (best, rivals.view(count, count)))
    one, two = best.triu(1).nonzero().unbind(1)
    likely = best[one, two]
    # All that is held is one node, after those of the pieces.
    node = torch.where(held, count, torch.arange(count))
    ends = torch.stack([node[one], node[two]])
    contradicted = (rivals.triu(1) > 0) & (best == 0) & (node[:, None] != node)
    if contradicted.any():
        drawn, label = _drawn_parts(likely, ends, count + 1, config.draws)
        third, fourth = (node[side] for side in contradicted.nonzero().unbind(1))
        together = (label[:, third] == label[:, fourth]).float()
        likely = _lowered(likely, drawn.float(), together, rivals[contradicted] / (1 + rivals[contradicted]))
    label = _drawn_parts(likely, ends, count + 1, config.draws)[1]
    reached = (label[:, node] == label[:, -1:]).float().mean(0)
    # That all draws agree is no certainty.
    return reached.where(held, reached * (1 - 1 / config.draws))


def _drawn_parts(
    likely: Float[Tensor, "e"], ends: Int[Tensor, "2 e"], nodes: int, draws: int
) -> tuple[Bool[Tensor, "d e"], Int[Tensor, "d nodes"]]:
    """Which links are true in many draws, and the connected component of every node in each."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    drawn = torch.rand(draws, len(likely), generator=torch.Generator().manual_seed(0)) < likely
    draw, edge = drawn.nonzero().unbind(1)
    rows, columns = (draw * nodes + ends[:, edge]).numpy()
    size = draws * nodes
    graph = coo_array((torch.ones(len(draw)).numpy(), (rows, columns)), shape=(size, size))
    return drawn, torch.from_numpy(connected_components(graph, directed=False)[1]).view(draws, nodes)


def _lowered(
    likely: Float[Tensor, "e"], drawn: Float[Tensor, "d e"], together: Float[Tensor, "d c"], against: Float[Tensor, "c"]
) -> Float[Tensor, "e"]:
    """Probabilities of links given c contradicting matches of probability `against`, whose pieces are `together`."""
    true, false = drawn.sum(0), (1 - drawn).sum(0)
    mean = together.mean(0)[:, None]
    # Links that are true or false in all draws are no evidence: the mean counts like one more draw.
    if_true = (together.T @ drawn + mean) / (true + 1)
    if_false = (together.T @ (1 - drawn) + mean) / (false + 1)
    ratio = torch.log1p(-against[:, None] * if_true) - torch.log1p(-against[:, None] * if_false)
    return torch.sigmoid(torch.logit(likely, 1e-6) + ratio.sum(0))
