"""The ways fragments take from the table to their places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import roma
import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.geometry import Poses

# Of a long history this many moments are passed through: more would only make fragments tremble.
_MOMENTS = 5
# Early guesses may lie anywhere: farther from the middle than `_NEAR` they are drawn in, to less than `_FAR`.
_NEAR, _FAR = 0.8, 1.5
# The last fragment sets out when this share of a flight's time is over.
_LATENESS = 0.35


@dataclass(frozen=True)
class Flight:
    """Stations on the way of n fragments, the times (0…1) when they are reached, and when each fragment sets out."""

    stations: tuple[Poses, ...]
    times: Float[Tensor, "k"]
    delays: Float[Tensor, "n"]

    def at(self, time: float) -> Poses:
        """Where the fragments are at a time from 0, all at the first station, to 1, all at the last."""
        if time >= 1:
            return self.stations[-1]
        own = torch.tensor([eased((time - delay) / (1 - _LATENESS)) for delay in self.delays.tolist()])
        after = torch.searchsorted(self.times, own, right=True).clamp(1, len(self.times) - 1)
        share = (own - self.times[after - 1]) / (self.times[after] - self.times[after - 1])
        who = torch.arange(len(own))
        places = torch.stack([station.translation for station in self.stations])
        turns = torch.stack([station.rotation for station in self.stations])
        place = torch.lerp(places[after - 1, who], places[after, who], share[:, None])
        return Poses(between(turns[after - 1, who], turns[after, who], share), place)

    def arrived(self, time: float) -> float:
        """The share of its way that the last fragment has behind it."""
        return eased((time - float(self.delays.max())) / (1 - _LATENESS))


def eased(time: float) -> float:
    """Start gently and come softly to rest: 0 → 0, 1 → 1, flat at both ends and beyond."""
    inside = min(max(time, 0.0), 1.0)
    return inside * inside * (3 - 2 * inside)


def plan_flight(start: Poses, history: Sequence[Poses], end: Poses) -> Flight:
    """From `start` through a few moments of `history` to `end`; what comes to stand lowest sets out first."""
    passed = [history[i] for i in torch.linspace(0, len(history) - 1, min(_MOMENTS, len(history))).round().long()]
    stations = (start, *(_drawn_in(poses) for poses in passed), _on_cpu(end))
    efforts = torch.stack([_effort(a, b) for a, b in pairwise(stations)])
    times = torch.cat([torch.zeros(1), efforts.cumsum(0) / efforts.sum()])
    rank = end.translation[:, 1].detach().cpu().argsort(stable=True).argsort()
    return Flight(stations, times, _LATENESS * rank / max(1, len(end) - 1))


def between(
    first: Float[Tensor, "n 3 3"], second: Float[Tensor, "n 3 3"], share: Float[Tensor, "n"]
) -> Float[Tensor, "n 3 3"]:
    """Rotations on the shortest ways from the first to the second, at these shares of them."""
    way = roma.rotmat_to_rotvec(first.transpose(-1, -2) @ second)
    return first @ roma.rotvec_to_rotmat(share[:, None] * way)


def _effort(first: Poses, second: Poses) -> Tensor:
    """How far it is from one station to the next, on average; a half turn counts as much as a whole object."""
    turn = roma.rotmat_geodesic_distance(first.rotation, second.rotation) / torch.pi
    return ((first.translation - second.translation).norm(dim=-1) + turn).mean() + 1e-3


def _drawn_in(poses: Poses) -> Poses:
    """Poses that can be shown: rotations proper, and nothing too far away."""
    poses = _on_cpu(poses)
    distance = poses.translation.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    room = _FAR - _NEAR
    shown = torch.where(distance > _NEAR, _NEAR + room * torch.tanh((distance - _NEAR) / room), distance)
    return Poses(roma.special_procrustes(poses.rotation), poses.translation * (shown / distance))


def _on_cpu(poses: Poses) -> Poses:
    return Poses(poses.rotation.detach().cpu().float(), poses.translation.detach().cpu().float())
