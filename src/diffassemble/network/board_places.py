"""Where clusters can stand on boards, and which of those places their noisy poses speak for."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diffassemble.core import Poses, turn_matrix
from diffassemble.network.evidence import Clusters

_NEVER = -1e9
TURNS = 4


@dataclass(frozen=True)
class BoardPosterior:
    """All poses that c clusters can take on their boards: four quarter turns, and each shift that keeps them within.

    `owner` is each piece's cluster; `shifts` are places of its frame's origin along x and y, of which `open` count.
    """

    owner: Int[Tensor, "n"]
    frame: Poses
    shifts: Float[Tensor, "c 4 2 j"]
    open: Bool[Tensor, "c 4 2 j"]

    def mean(self, noisy: Poses, alpha_bar: Float[Tensor, "n k"]) -> Poses:
        """The mean pose of a cluster's frame, told to every member, given noisy poses of all its members.

        Takes and gives k poses of every piece (n·k, piece by piece). All places are equally probable beforehand;
        then each counts by its likelihood under the Gaussian noise. Along x and y the shifts are independent.
        """
        samples = alpha_bar.shape[1]
        place, turn = noisy.translation.unflatten(0, (-1, samples)), noisy.rotation.unflatten(0, (-1, samples))
        offset, own_turn = self.frame.translation, self.frame.rotation
        count = self._total(torch.ones_like(alpha_bar))
        signal = (alpha_bar.sqrt() / (1 - alpha_bar)) / count[self.owner]
        signal, certain = self._total(signal), self._total(signal * alpha_bar.sqrt())
        quarter = turn_matrix(torch.arange(TURNS, device=place.device))

        seen = self._total(place[..., :, None] * offset[:, None, None, :] + turn @ own_turn[:, None].mT / 2)
        by_turn = signal[..., None] * torch.einsum("tab,ckab->ckt", quarter, seen)
        middle = torch.einsum("tab,cb->cta", quarter, self._total(offset))
        slope = signal[..., None, None] * self._total(place)[:, :, None] - certain[..., None, None] * middle[:, None]
        curve = (certain * count)[..., None, None, None] / 2
        shifts = self.shifts[:, None]
        by_shift = (slope[..., None] - curve * shifts) * shifts
        by_shift = by_shift.masked_fill(~self.open[:, None], _NEVER)
        chance = torch.softmax(by_turn + by_shift.logsumexp(-1).sum(-1), -1)
        best = (by_shift.softmax(-1) * shifts).sum(-1)
        rotation = torch.einsum("ckt,tab->ckab", chance, quarter)
        translation = torch.einsum("ckt,cktd->ckd", chance, best)
        return Poses(rotation[self.owner].flatten(0, 1), translation[self.owner].flatten(0, 1))

    def _total(self, values: Float[Tensor, "n *rest"]) -> Float[Tensor, "c *rest"]:
        """The sum over the members of each cluster."""
        return values.new_zeros(len(self.shifts), *values.shape[1:]).index_add(0, self.owner, values)


def board_posterior(clusters: Clusters, room: Float[Tensor, "n 2"], pitch: Float[Tensor, "n"]) -> BoardPosterior:
    """The places of clusters on boards whose outermost cells are `room` apart along x and y, neighbours by `pitch`."""
    labels, owner = clusters.label.unique(return_inverse=True)

    def of_cluster(values: Tensor) -> Tensor:
        index = owner[:, None].expand_as(values)
        return values.new_zeros(len(labels), values.shape[1]).scatter_reduce(0, index, values, "amax")

    extent, room, step = 2 * of_cluster(clusters.frame.translation), of_cluster(room), of_cluster(pitch[:, None])
    turned = torch.stack([extent, extent.flip(1)] * (TURNS // 2), 1)
    spare = ((room[:, None] - turned) / step[:, None]).round()
    number = torch.arange(int(spare.max()) + 1, device=spare.device)
    shifts = (number - spare.clamp(min=0)[..., None] / 2) * step[:, None, None]
    return BoardPosterior(owner, clusters.frame, shifts, number <= spare[..., None])
