"""What is given: pieces without their places."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class ImagePieces:
    """Square pieces of one picture, colours in [0, 1], as they lie on the table: shuffled and turned."""

    pixels: Float[Tensor, "n 3 s s"]

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def size(self) -> int:
        """Side of a piece in pixels."""
        return self.pixels.shape[-1]
