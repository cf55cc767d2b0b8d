"""Products along the edges of a sparse graph, without a copy of the nodes for every edge.

Torch's own products of sparse matrices: what receivers and senders have in common on every edge, and sums over
senders. Both know their gradients, which are products of the same kind. g is whatever asks at once: samples times
heads. Half precision is not known here: everything is computed with 32 bits.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

# What is used here, products of sparse and dense matrices, has long been stable.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")


@dataclass(frozen=True)
class Incidence:
    """Edges listed by receiver, and the same edges listed by sender.

    The edges of receiver i are those from `starts[i]` to `starts[i + 1]`; `back` takes values per edge to the order
    by sender.
    """

    starts: Int[Tensor, "n_and_one"]
    sender: Int[Tensor, "e"]
    receiver: Int[Tensor, "e"]
    back_starts: Int[Tensor, "n_and_one"]
    back: Int[Tensor, "e"]

    @staticmethod
    def of(edges: Int[Tensor, "2 e"], count: int) -> Incidence:
        """Edges (sender, receiver) among `count` nodes, sorted by receiver and then by sender."""
        sender, receiver = edges
        return Incidence(
            _starts(receiver, count), sender, receiver, _starts(sender, count), sender.argsort(stable=True)
        )

    def forth(self, values: Float[Tensor, "e"]) -> Tensor:
        """A sparse matrix, receivers down, senders across."""
        return _matrix(self.starts, self.sender, values)

    def reversed(self, values: Float[Tensor, "e"]) -> Tensor:
        """Its transpose."""
        return _matrix(self.back_starts, self.receiver[self.back], values[self.back])


def _matrix(starts: Int[Tensor, "n_and_one"], cols: Int[Tensor, "e"], values: Float[Tensor, "e"]) -> Tensor:
    shape = len(starts) - 1, len(starts) - 1
    return torch.sparse_csr_tensor(starts, cols, values, shape, device=values.device, check_invariants=False)


def _starts(ends: Int[Tensor, "e"], count: int) -> Int[Tensor, "n_and_one"]:
    return torch.cat([ends.new_zeros(1), torch.bincount(ends, minlength=count).cumsum(0)])


def _common(one: Tensor, other: Tensor, incidence: Incidence) -> Float[Tensor, "e g"]:
    pattern = incidence.forth(one.new_zeros(len(incidence.sender)))
    return torch.stack(
        [
            torch.sparse.sampled_addmm(pattern, ours, theirs.T, beta=0).values()
            for ours, theirs in zip(_apart(one), _apart(other), strict=True)
        ],
        1,
    )


def _summed(weights: Tensor, values: Tensor, incidence: Incidence, back: bool) -> Float[Tensor, "n g c"]:
    matrix = incidence.reversed if back else incidence.forth
    parts = zip(weights.T.contiguous(), _apart(values), strict=True)
    return torch.stack([matrix(weight) @ part for weight, part in parts], 1)


def _apart(values: Float[Tensor, "n g c"]) -> Float[Tensor, "g n c"]:
    return values.transpose(0, 1).contiguous()


class _Common(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, one: Tensor, other: Tensor, incidence: Incidence) -> Tensor:
        ctx.save_for_backward(one, other)
        ctx.incidence = incidence
        return _common(one, other, incidence)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        one, other = ctx.saved_tensors
        (gradient,) = gradients
        forth, back = (_summed(gradient, part, ctx.incidence, way) for part, way in ((other, False), (one, True)))
        return forth, back, None


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, values: Tensor, incidence: Incidence) -> Tensor:
        ctx.save_for_backward(weights, values)
        ctx.incidence = incidence
        return _summed(weights, values, incidence, back=False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        weights, values = ctx.saved_tensors
        (gradient,) = gradients
        return _common(gradient, values, ctx.incidence), _summed(weights, gradient, ctx.incidence, back=True), None


def common(
    receivers: Float[Tensor, "n g c"], senders: Float[Tensor, "n g c"], incidence: Incidence
) -> Float[Tensor, "e g"]:
    """The scalar product of what stands at the two ends of every edge."""
    with torch.autocast(receivers.device.type, enabled=False):
        return _Common.apply(receivers.float(), senders.float(), incidence)


def summed(
    weights: Float[Tensor, "e g"], senders: Float[Tensor, "n g c"], incidence: Incidence
) -> Float[Tensor, "n g c"]:
    """For every receiver the sum over its senders, weighed edge by edge."""
    with torch.autocast(senders.device.type, enabled=False):
        return _Summed.apply(weights.float(), senders.float(), incidence)
