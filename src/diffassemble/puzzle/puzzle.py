"""One thing to be put together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jaxtyping import Int
from torch import Tensor

from diffassemble.geometry import Poses
from diffassemble.puzzle.board import Board
from diffassemble.puzzle.pieces import ImagePieces


@dataclass(frozen=True)
class Puzzle:
    """Pieces, the board they belong on (which may have more cells than there are pieces), and, if known, the truth."""

    pieces: ImagePieces
    board: Board
    names: tuple[str, ...]
    truth: Poses | None = None

    def __len__(self) -> int:
        return len(self.pieces)

    def reordered(self, order: Int[Tensor, "n"]) -> Puzzle:
        """The same puzzle with its pieces listed in another order."""
        return replace(
            self,
            pieces=ImagePieces(self.pieces.pixels[order]),
            names=tuple(self.names[i] for i in order.tolist()),
            truth=None if self.truth is None else self.truth[order],
        )

    def without_truth(self) -> Puzzle:
        """What a solver may see."""
        return replace(self, truth=None)
