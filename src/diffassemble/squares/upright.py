"""Which way is up: one score for "this stands upright", asked of the assembled picture in its four turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from diffassemble.core import Poses, Puzzle, turn_pixels
from diffassemble.core.settings import Count, Fraction
from diffassemble.network.pretrained import Pretrained

_MIRRORED_TURNS = [0, 3, 2, 1]
EMPTY_COLOUR = 0.5

Uprighter = Callable[[Puzzle, Poses, tuple[int, ...]], int]
"""Says by how many clockwise quarter turns, of those allowed, a placement as a whole must be turned to be upright."""


@dataclass(frozen=True)
class UprightConfig:
    """What the scoring network is made of."""

    size: Count = 48
    """pixels a side at which pictures are looked at"""
    stem: Count = 24
    """channels of the first convolution"""
    widths: tuple[Count, ...] = (48, 96, 160)
    """channels of the residual blocks, each at half the resolution of the one before"""
    dropout: Fraction = 0.25


class ResidualBlock(nn.Module):
    """Two convolutions beside a shortcut; halves the resolution."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, width, 3, stride=2, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(width)
        self.shortcut = nn.Conv2d(channels, width, 1, bias=False)
        self.shortcut_norm = nn.BatchNorm2d(width)
        nn.init.zeros_(self.second_norm.weight)

    def forward(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d h2 w2"]:
        inner = F.relu(self.first_norm(self.first(maps)))
        shortcut = self.shortcut_norm(self.shortcut(F.avg_pool2d(maps, 2, ceil_mode=True)))
        return F.relu(shortcut + self.second_norm(self.second(inner)))


class Upright(Pretrained):
    """Logits of the four turns. Turning the picture only shifts them, since each turn is scored by the same network."""

    config_class = UprightConfig

    def __init__(self, config: UprightConfig) -> None:
        super().__init__()
        self.config = config
        self.stem = nn.Conv2d(4, config.stem, 5, stride=2, padding=2, bias=False)
        self.stem_norm = nn.BatchNorm2d(config.stem)
        channels = (config.stem, *config.widths)
        self.blocks = nn.Sequential(*map(ResidualBlock, channels[:-1], channels[1:]))
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(channels[-1], 1)

    def score(self, pictures: Float[Tensor, "b 3 s s"]) -> Float[Tensor, "b"]:
        """How upright square pictures look as they are; the height within the picture is a fourth channel."""
        height = torch.linspace(-1, 1, pictures.shape[-2], device=pictures.device, dtype=pictures.dtype)
        maps = torch.cat([(pictures - 0.5) * 4, height[:, None].expand_as(pictures[:, :1])], 1)
        maps = maps.contiguous(memory_format=torch.channels_last)
        maps = self.blocks(F.relu(self.stem_norm(self.stem(maps))))
        return self.head(self.dropout(maps.mean((-2, -1)))).squeeze(-1)

    def forward(self, pictures: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 4"]:
        """Logit k: turning the picture clockwise by k quarter turns makes it upright.

        Colours are in [0, 1], what is not known is 0.5. Pictures of any shape are brought to one square first.
        """
        size = (self.config.size, self.config.size)
        if pictures.shape[-2:] != size:
            pictures = F.interpolate(pictures, size, mode="bilinear", antialias=True)
        turned = torch.cat([torch.rot90(pictures, -turn, (-2, -1)) for turn in range(4)])
        return self.score(turned).view(4, -1).T


@torch.no_grad()
def upright_turn(model: Upright, picture: Float[Tensor, "3 H W"], allowed: Sequence[int] = (0, 1, 2, 3)) -> int:
    """How many clockwise quarter turns, of those allowed, make the picture upright; colours in [0, 1].

    The mirror image is asked too: by symmetry it needs the opposite turn.
    """
    plain, mirrored = model(torch.stack([picture, picture.flip(-1)]))
    logits = plain + mirrored[_MIRRORED_TURNS]
    return max(allowed, key=lambda turn: float(logits[turn]))


def assembled_pixels(puzzle: Puzzle, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"]) -> Float[Tensor, "3 H W"]:
    """The picture that a placement makes; empty cells are grey."""
    board, size = puzzle.board, puzzle.pictures.size
    canvas = torch.full((board.cells, 3, size, size), EMPTY_COLOUR)
    canvas[cells] = turn_pixels(puzzle.pixels, turns)
    grid = canvas.view(board.rows, board.cols, 3, size, size).permute(2, 0, 3, 1, 4)
    return grid.reshape(3, board.rows * size, board.cols * size)


def turn_to_upright(model: Upright, puzzle: Puzzle, placed: Poses, allowed: tuple[int, ...]) -> int:
    """An `Uprighter`, once the network is given: it looks at the assembled picture."""
    return upright_turn(model, assembled_pixels(puzzle, *puzzle.board.snap(placed)), allowed=allowed)
