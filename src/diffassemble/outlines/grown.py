"""What growing gives: where pieces stand, how surely, and in which object."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core import Poses


class Grown(NamedTuple):
    """Poses in pixels; `objects` are 0, 1, …, or −1 for pieces left out, whose confidence is 0.

    `notes` say of each piece why it is not surer, if there is something to say. `order` tells when each piece was
    placed, where that is known: first those with the least number. `cells` are row and column in each object's lattice,
    counted from its top left corner as the poses show it, where there is one; −1 for pieces in none.
    """

    poses: Poses
    confidence: Float[Tensor, "n"]
    objects: Int[Tensor, "n"]
    notes: tuple[str, ...]
    order: Int[Tensor, "n"] | None = None
    cells: Int[Tensor, "n 2"] | None = None
