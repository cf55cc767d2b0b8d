"""What the network is asked to make small."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from diffassemble.geometry import Poses


def translation_loss(true: Poses, predicted: Poses) -> Float[Tensor, ""]:
    """Section 3.3, L_tr: mean squared distance of the translations."""
    return (true.translation - predicted.translation).square().sum(-1).mean()


def rotation_loss(true: Poses, predicted: Poses) -> Float[Tensor, ""]:
    """Section 3.3, L_rt: ‖Rᵀ R̂ − I‖², which equals ‖R̂ − R‖² since R is orthogonal.

    R̂ is not forced to be orthogonal: where several turns are possible, the best answer is their mean.
    """
    return (predicted.rotation - true.rotation).square().sum((-1, -2)).mean()
