"""Pieces put together relative to some that are held: several samples of the denoiser, and the assembly they make.

Each sample hears other matches. Then the network tells its verdict on every match; one that tells none believes what a
sample shows. Along the best verdicts a tree joins the pieces to what is held, one for every sample. Of all these trees
the one that shows most evidence is the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diffassemble.core import Locks, Matches, Poses, Puzzle
from diffassemble.network.batch import pack, pack_copies, with_matches
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.evidence import THRESHOLDS, grow_clusters
from diffassemble.network.sampling import denoise, sample_count
from diffassemble.network.spatial import Held, angle_between, nearest_rotation, residuals, settled, shown_evidence


@dataclass(frozen=True)
class AssemblyConfig:
    """How samples become an assembly."""

    unheard: float = 0.25
    """share of the matches that all samples but the first do without"""
    turn: float = 0.15
    """two samples agree on a piece that they turn alike within this, in radians"""
    shift: float = 0.05
    """the same for places, in units"""
    believed: float = 1.5
    """a sample bears a match out within so many times these"""
    rival: float = 0.1
    """least probability of a match that counts against those it contradicts"""
    draws: int = 512
    """draws of which matches are true"""


DEFAULT = AssemblyConfig()


def spoilt(matches: Matches, wrong: float, unheard: float, generator: torch.Generator) -> Matches:
    """Matches of which a share is lost and a share says something wrong, as probable as before.

    A wrong one keeps the distance of the two pieces, all else is drawn at random. Both directions go together.
    """
    half = len(matches) // 2
    mirrored = torch.equal(matches.first[:half], matches.second[half:]) and 2 * half == len(matches)
    assert mirrored, "matches are listed one way, then the other way round"
    kept = (torch.rand(half, generator=generator) >= unheard).nonzero()[:, 0]
    replaced = (torch.rand(half, generator=generator) < wrong)[kept]
    forth = matches[kept].pose
    other = random_poses(len(kept), forth.translation.norm(dim=-1), forth.translation.shape[1], generator)
    rotation = torch.where(replaced[:, None, None], other.rotation, forth.rotation)
    forth = Poses(rotation, torch.where(replaced[:, None], other.translation, forth.translation))
    back = forth.inverse()
    both = matches[torch.cat([kept, kept + half])]
    rotation = torch.cat([forth.rotation, back.rotation])
    return replace(both, pose=Poses(rotation, torch.cat([forth.translation, back.translation])))


def random_poses(count: int, far: Float[Tensor, "n"], dimension: int, generator: torch.Generator) -> Poses:
    """Any rotation, and a place so far away in any direction."""
    rotation = nearest_rotation(torch.randn(count, dimension, dimension, generator=generator))
    direction = F.normalize(torch.randn(count, dimension, generator=generator), dim=-1)
    return Poses(rotation, far[:, None] * direction)


def anchored(weight: Float[Tensor, "n"], locks: Locks | None, dimension: int) -> tuple[Locks, Poses]:
    """What is held while others move, seen from one piece; and the pose of that piece, once for every piece.

    It is the one of most weight: of those that are locked, or of all, and then it stays turned as it was given.
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
    """Yield after every reverse step what share is done, x_t of the first sample, and X₀ of all samples (k·n poses).

    What the puzzle has locked is held. The first sample hears all matches.
    """
    count, space = len(puzzle), model.space
    others = sample_count(samples, count) - 1
    heard = [matches, *(spoilt(matches, 0.0, config.unheard, generator) for _ in range(others))]
    batch = pack_copies(puzzle, heard)
    total = len(model.schedule.visited(steps))
    chain = denoise(model, batch, steps, 1, generator, eta, batch.locks)
    for number, (noisy, predicted) in enumerate(chain, 1):
        yield number / total, space.to_poses(noisy[:count, 0]), space.to_poses(predicted.vectors[:, 0])


@torch.no_grad()
def judged(model: PoseNetwork, puzzle: Puzzle, matches: Matches, found: Poses) -> Float[Tensor, "m k"]:
    """The network's verdict on all matches, as probabilities, once it has seen what k samples came to (k·n poses)."""
    device, count = next(model.parameters()).device, len(puzzle)
    state = model.space.to_vector(found).unflatten(0, (-1, count)).transpose(0, 1).contiguous()
    times = torch.ones(state.shape[:2], dtype=torch.long, device=device)
    condition = model.condition(with_matches(pack([puzzle]), [matches]).to(device))
    verdict = model.predict(state.to(device), times, condition).verdict
    assert verdict is not None, "this model has no verdicts"
    half = len(matches) // 2
    return torch.sigmoid((verdict[:half] + verdict[half:]) / 2).repeat(2, 1).cpu()


def assembled(
    matches: Matches,
    found: Poses,
    held: Locks,
    unit: Float[Tensor, "n"],
    verdicts: Float[Tensor, "m k"] | None = None,
    locked: bool = True,
    config: AssemblyConfig = DEFAULT,
) -> tuple[Poses, Float[Tensor, "n"]]:
    """The assembly that k samples (k·n poses) make, and how probable it is that each piece belongs where it stands.

    That is seen from what is held; if nothing is really `locked`, from the largest part that holds together.
    """
    ranks = _believed(matches, found, held, unit, config) if verdicts is None else verdicts
    # Matches that are less probable than any tree takes are still better than none.
    trees = [tree_poses(weighed(matches, rank.clamp(min=THRESHOLDS[-1])), held) for rank in ranks.unbind(1)]
    worth = torch.stack([shown_evidence(matches, tree.rotation, tree.translation, unit)[0] for tree in trees])
    answer = trees[int(worth.argmax())]
    alike = [
        (angle_between(tree.rotation, answer.rotation) < config.turn)
        & ((tree.translation - answer.translation).norm(dim=-1) < config.shift * unit)
        for tree in trees
    ]
    agreed = (worth.softmax(0)[:, None] * torch.stack(alike)).sum(0)
    told = [matches] if verdicts is None else [matches, weighed(matches, verdicts.mean(1))]
    seen_from = held.held
    if not locked:
        borne_out = told[-1][shown(told[-1], answer, unit, config).nonzero()[:, 0]]
        seen_from = torch.arange(len(unit)) == grow_clusters(borne_out, len(unit), apart=0.0)[1].sizes().argmax()
    # Who looks at one pair alone, and who hears all, must both be sure.
    sure = torch.stack([linked(one, answer, seen_from, unit, config) for one in told]).amin(0)
    return answer, agreed * sure


def weighed(matches: Matches, weight: Float[Tensor, "m"]) -> Matches:
    """The same matches with other probabilities."""
    return replace(matches, evidence=torch.cat([weight[:, None], matches.evidence[:, 1:]], 1))


def _believed(
    matches: Matches, found: Poses, held: Locks, unit: Float[Tensor, "n"], config: AssemblyConfig
) -> Float[Tensor, "m k"]:
    """Verdicts of a network that tells none: what a sample nearly shows comes before all that it does not."""
    rotation, place = (
        part.unflatten(0, (-1, len(unit))).transpose(0, 1) for part in (found.rotation, found.translation)
    )
    known = Held(held.held, held.poses.rotation, held.poses.translation)
    angle, far = residuals(matches, *settled(matches, rotation, place, known, unit))
    shows = (angle < config.believed * config.turn) & (far < config.believed * config.shift * unit[matches.first, None])
    return 0.5 * matches.probability[:, None] + 0.5 * shows


def tree_poses(matches: Matches, held: Locks) -> Poses:
    """Every piece where the most probable matches put it, seen from one that is held; others stay in the middle."""
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


def shown(
    matches: Matches, poses: Poses, unit: Float[Tensor, "n"], config: AssemblyConfig = DEFAULT
) -> Bool[Tensor, "m"]:
    """Which matches an assembly bears out."""
    angle, far = residuals(matches, poses.rotation[:, None], poses.translation[:, None])
    return ((angle < 2 * config.turn) & (far < 2 * config.shift * unit[matches.first, None]))[:, 0]


def linked(
    matches: Matches,
    poses: Poses,
    held: Bool[Tensor, "n"],
    unit: Float[Tensor, "n"],
    config: AssemblyConfig = DEFAULT,
) -> Float[Tensor, "n"]:
    """How probable it is that a piece belongs where it stands: that true matches lead from there to what is held.

    Every match that is shown is true with its probability, which it shares with those of the same two pieces that are
    not, and as if independent of others; so loops make surer than chains. A match of two pieces that stand otherwise
    speaks against all links by which they hang together: not all of them can be true with it. Counted in many draws.
    """
    count = len(held)
    borne_out = shown(matches, poses, unit, config)
    chance = matches.probability.clamp(1e-6, 0.995)
    odds = chance / (1 - chance)
    pair = matches.first * count + matches.second
    against = odds.where(~borne_out & (chance >= config.rival), 0.0)
    rivals = torch.zeros(count * count).index_add(0, pair, against)
    link = torch.where(borne_out, odds / (1 + odds + rivals[pair]), 0.0)
    best = torch.zeros(count * count).scatter_reduce(0, pair, link, "amax").view(count, count)
    best, rivals = (torch.maximum(both, both.T) for both in (best, rivals.view(count, count)))
    one, two = best.triu(1).nonzero().unbind(1)
    likely = best[one, two]
    # What is held is one node, after all pieces.
    node = torch.where(held, count, torch.arange(count))
    ends = torch.stack([node[one], node[two]])
    denied = (rivals.triu(1) > 0) & (best == 0) & (node[:, None] != node)
    if denied.any():
        drawn, label = _drawn_parts(likely, ends, count + 1, config.draws)
        third, fourth = (node[side] for side in denied.nonzero().unbind(1))
        together = (label[:, third] == label[:, fourth]).float()
        denial = rivals[denied] / (1 + rivals[denied])
        likely = _less_likely(likely, drawn.float(), together, denial)
    label = _drawn_parts(likely, ends, count + 1, config.draws)[1]
    reached = (label[:, node] == label[:, -1:]).float().mean(0)
    # That all draws agree makes nobody quite sure.
    return reached.where(held, reached * (1 - 1 / config.draws))


def _drawn_parts(
    likely: Float[Tensor, "e"], ends: Int[Tensor, "2 e"], nodes: int, draws: int
) -> tuple[Bool[Tensor, "d e"], Int[Tensor, "d nodes"]]:
    """Which links are true in many draws, and which part of the whole every node then belongs to."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    drawn = torch.rand(draws, len(likely), generator=torch.Generator().manual_seed(0)) < likely
    draw, edge = drawn.nonzero().unbind(1)
    rows, columns = (draw * nodes + ends[:, edge]).numpy()
    size = draws * nodes
    graph = coo_array((torch.ones(len(draw)).numpy(), (rows, columns)), shape=(size, size))
    return drawn, torch.from_numpy(connected_components(graph, directed=False)[1]).view(draws, nodes)


def _less_likely(
    likely: Float[Tensor, "e"],
    drawn: Float[Tensor, "d e"],
    together: Float[Tensor, "d c"],
    denial: Float[Tensor, "c"],
) -> Float[Tensor, "e"]:
    """Links after they have been denied: each time the odds change by how much rarer a denial is if the link is true.

    In a draw, two pieces hang together or not; a match of probability `denial` that says otherwise is then wrong.
    """
    true, false = drawn.sum(0), (1 - drawn).sum(0)
    mean = together.mean(0)[:, None]
    # Links that are true or false in all draws say nothing: the mean counts like one more draw.
    if_true = (together.T @ drawn + mean) / (true + 1)
    if_false = (together.T @ (1 - drawn) + mean) / (false + 1)
    rarer = torch.log1p(-denial[:, None] * if_true) - torch.log1p(-denial[:, None] * if_false)
    return torch.sigmoid(torch.logit(likely, 1e-6) + rarer.sum(0))
