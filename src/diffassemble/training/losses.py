"""What the network is asked to make small."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from diffassemble.geometry import Poses


def translation_loss(true: Poses, predicted: Poses, weight: Float[Tensor, "n"] | None = None) -> Float[Tensor, ""]:
    """Section 3.3, L_tr: mean squared distance of the translations."""
    squares = (true.translation - predicted.translation).square().sum(-1)
    return (squares if weight is None else weight * squares).mean()


def rotation_loss(true: Poses, predicted: Poses, weight: Float[Tensor, "n"] | None = None) -> Float[Tensor, ""]:
    """Section 3.3, L_rt: ‖Rᵀ R̂ − I‖², which equals ‖R̂ − R‖² since R is orthogonal.

    R̂ is not forced to be orthogonal: where several turns are possible, the best answer is their mean.
    """
    squares = (predicted.rotation - true.rotation).square().sum((-1, -2))
    return (squares if weight is None else weight * squares).mean()


def noise_weight(alpha_bar: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """The less noise, the more an error counts: 1 / (1 − ᾱ + 0.05).

    Near time T much of the error can't be helped, and unweighted it drowns the small errors that decide in the end.
    """
    return 1 / (1.05 - alpha_bar)
