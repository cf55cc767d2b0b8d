"""How like a picture a placement looks: whether the whole lies where it should, and every lone piece with it.

Where pieces are missing, borders can't tell by how far the whole is shifted, nor where a piece belongs whose neighbours
are all lost. What the picture shows often can: faces stand in the middle, the sky is above.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from diffassemble.geometry import turn_pixels
from diffassemble.model.pretrained import Pretrained
from diffassemble.model.upright import ResidualBlock
from diffassemble.puzzle import Board

_UNKNOWN = 0.5
_TURNS = 4
# Placements that are looked at together.
_TOGETHER = 64


@dataclass(frozen=True)
class CriticConfig:
    """What the scoring network is made of."""

    size: int = 60
    """pixels a side at which placements are looked at"""
    stem: int = 24
    """channels of the first convolution"""
    widths: tuple[int, ...] = (48, 72, 96)
    """channels of the residual blocks, each at half the resolution of the one before"""
    hidden: int = 64
    """width between what is seen and the score"""
    dropout: float = 0.2


class Critic(Pretrained):
    """Scores of placements of the same pieces: differences of two are log odds of which one is true."""

    config_class = CriticConfig

    def __init__(self, config: CriticConfig) -> None:
        super().__init__()
        self.config = config
        self.stem = nn.Conv2d(6, config.stem, 5, stride=2, padding=2, bias=False)
        self.stem_norm = nn.BatchNorm2d(config.stem)
        channels = (config.stem, *config.widths)
        self.blocks = nn.Sequential(*map(ResidualBlock, channels[:-1], channels[1:]))
        side = config.size
        for _ in channels:
            side = (side + 1) // 2
        self.head = nn.Sequential(
            nn.Flatten(),
            nn.Dropout(config.dropout),
            nn.Linear(channels[-1] * side * side, config.hidden),
            nn.ReLU(),
            nn.Linear(config.hidden, 1),
        )

    def forward(self, pictures: Float[Tensor, "b 4 s s"]) -> Float[Tensor, "b"]:
        """How true pictures look: three colours, 0.5 where nothing is known, and whether something is known."""
        span = torch.linspace(-1, 1, self.config.size, device=pictures.device, dtype=pictures.dtype)
        places = torch.stack(torch.meshgrid(span, span, indexing="ij"))
        colours = (pictures[:, :3] - _UNKNOWN) * 4
        maps = torch.cat([colours, pictures[:, 3:], places.expand(len(pictures), -1, -1, -1)], 1)
        maps = maps.contiguous(memory_format=torch.channels_last)
        return self.head(self.blocks(F.relu(self.stem_norm(self.stem(maps))))).squeeze(-1)

    @torch.no_grad()
    def judge(
        self,
        tiles: Float[Tensor, "n 4 3 c c"],
        at: Int[Tensor, "k cells"],
        turns: Int[Tensor, "k cells"],
        board: Board,
    ) -> Float[Tensor, "k"]:
        """Scores of placements: the piece on each cell, or −1, and its turn. The mirror images are asked, too."""
        scores = []
        for some, turned in zip(at.split(_TOGETHER), turns.split(_TOGETHER), strict=True):
            pictures = laid(tiles, some, turned, board, self.config.size)
            scores.append((self(pictures) + self(pictures.flip(-1))) / 2)
        return torch.cat(scores)


def tiles_of(pixels: Float[Tensor, "n 3 s s"], board: Board, size: int) -> Float[Tensor, "n 4 3 c c"]:
    """Pieces, small enough for a picture of `size` pixels, in their four turns."""
    side = max(1, round(size / max(board.rows, board.cols)))
    small = F.interpolate(pixels, (side, side), mode="bilinear", antialias=True)
    return torch.stack([turn_pixels(small, torch.full((len(small),), turn)) for turn in range(_TURNS)], 1)


def laid(
    tiles: Float[Tensor, "n 4 3 c c"],
    at: Int[Tensor, "k cells"],
    turns: Int[Tensor, "k cells"],
    board: Board,
    size: int,
) -> Float[Tensor, "k 4 s s"]:
    """The pictures that placements make, and where there is a piece."""
    known = at >= 0
    shown = torch.where(known[..., None, None, None], tiles[at.clamp(min=0), turns % _TURNS], _UNKNOWN)
    side = tiles.shape[-1]
    mask = known[..., None, None, None].expand(-1, -1, 1, side, side).to(tiles)
    grid = torch.cat([shown, mask], 2).unflatten(1, (board.rows, board.cols)).permute(0, 3, 1, 4, 2, 5)
    pictures = grid.reshape(len(at), 4, board.rows * side, board.cols * side)
    if pictures.shape[-2:] == (size, size):
        return pictures
    return F.interpolate(pictures, (size, size), mode="bilinear", antialias=True)
