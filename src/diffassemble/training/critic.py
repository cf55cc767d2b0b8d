"""The task of learning how true placements look."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from diffassemble.core import Board
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Count
from diffassemble.squares.critic import Critic, CriticConfig, laid, tiles_of
from diffassemble.training.config import Config, PictureConfig, TrainingConfig
from diffassemble.training.loop import Task
from diffassemble.training.pictures import Variation, load_pictures, load_square, share_out, uniform, vary

Cells = Int[Tensor, "cells"]
"""a number for each cell of a board"""
# Cells of a side; all divide 60 pixels.
SIDES = (4, 5, 6, 6, 6, 10, 12)
# The picture's frame must stay what it is: next to nothing is cropped.
SLIGHT = Variation(smallest_crop=0.97, tilt=0.0, light=0.15, holed_share=0.0)
FEWEST, MOST = 0.1, 0.45
"""shares of missing pieces"""


@dataclass(frozen=True)
class CriticTraining(TrainingConfig):
    """How the critic of placements learns."""

    pictures: Count = 6
    """pictures in a batch, over all processes"""
    false: Count = 7
    """false placements that each true one is told from"""


class CriticTask(Task):
    """True placements against the same pieces shifted, turned, or put elsewhere; accuracy on pictures held apart."""

    defaults = Config(CriticConfig(), PictureConfig(), CriticTraining())
    network = Critic

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.batch = config.training.pictures, "pictures"
        self.store, self.held_apart = load_pictures(config.data, partial(load_square, side=2 * config.model.size))

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        training = self.config.training
        numbers, weight = share_out(training.pictures, rank, world)
        device = next(model.parameters()).device
        seen = []
        for number in numbers:
            generator = seeded(training.seed, step, number)
            picture = vary(self.store.draw(generator)[None], (self.config.model.size,) * 2, SLIGHT, generator)[0]
            seen.append(self._placements(picture, seeded(training.seed, step, number, 1)))
        logits = model(torch.cat(seen).to(device)).view(len(seen), -1)
        target = torch.zeros(len(seen), dtype=torch.long, device=device)
        return weight * F.cross_entropy(logits.float(), target)

    def _placements(self, picture: Float[Tensor, "3 s s"], generator: torch.Generator) -> Float[Tensor, "k 4 s s"]:
        """The true placement of some of the pieces, and false ones."""
        side = SIDES[int(torch.randint(len(SIDES), (), generator=generator))]
        board, size = Board(side, side), self.config.model.size
        pixels = F.unfold(picture[None], size // side, stride=size // side)[0].T.unflatten(1, (3, size // side, -1))
        at = torch.arange(board.cells)
        at[torch.rand(board.cells, generator=generator) < uniform(FEWEST, MOST, generator)] = -1
        placements = [(at, torch.zeros_like(at))]
        placements += [false_placement(at, board, number, generator) for number in range(self.config.training.false)]
        cells, turns = (torch.stack(parts) for parts in zip(*placements, strict=True))
        return laid(tiles_of(pixels, board, size), cells, turns, board, size)

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Percent of held-apart pictures whose true placement looks best of all; "score" is the mean over folders."""
        assert isinstance(model, Critic)
        model.eval()
        device = next(model.parameters()).device
        scores: dict[str, float] = {}
        with torch.no_grad():
            for name, pictures in self.held_apart:
                right = 0
                for number, picture in enumerate(pictures):
                    size = (self.config.model.size,) * 2
                    small = F.interpolate(picture[None].float() / 255, size, mode="bilinear", antialias=True)[0]
                    logits = model(self._placements(small, seeded(83, number)).to(device))
                    right += int(logits.argmax() == 0)
                scores[name] = 100 * right / max(1, len(pictures))
        return {"score": sum(scores.values()) / max(1, len(scores)), **scores}


def false_placement(at: Cells, board: Board, kind: int, generator: torch.Generator) -> tuple[Cells, Cells]:
    """Where the same pieces do not belong: all shifted, or turned, or a few put elsewhere.

    `at` holds the piece on each cell of its true place, or −1; kinds alternate.
    """
    turns = torch.zeros_like(at)
    if kind % 3 == 0:
        return shifted(at, board, generator), turns
    if kind % 7 == 1:
        by = int(torch.randint(1, 4, (), generator=generator))
        order = torch.rot90(torch.arange(board.cells).view(board.rows, board.cols), -by).flatten()
        return at[order], torch.full_like(at, by)
    return strayed(at, 1 + kind % 2, generator)


def shifted(at: Cells, board: Board, generator: torch.Generator) -> Cells:
    """All pieces moved by one or two cells; those beyond the border lie on free cells at random."""
    reach = min(2, board.rows - 1)
    ways = [(y, x) for y in range(-reach, reach + 1) for x in range(-reach, reach + 1) if abs(y) + abs(x) in (1, 2)]
    down, right = ways[int(torch.randint(len(ways), (), generator=generator))]
    moved = torch.full((board.rows, board.cols), -1)
    rows, cols = torch.meshgrid(torch.arange(board.rows), torch.arange(board.cols), indexing="ij")
    new_rows, new_cols = rows + down, cols + right
    stays = (new_rows >= 0) & (new_rows < board.rows) & (new_cols >= 0) & (new_cols < board.cols)
    grid = at.view(board.rows, board.cols)
    moved[new_rows[stays], new_cols[stays]] = grid[stays]
    flat, beyond = moved.flatten(), grid[~stays]
    beyond = beyond[beyond >= 0]
    free = (flat < 0).nonzero()[:, 0]
    flat[free[torch.randperm(len(free), generator=generator)[: len(beyond)]]] = beyond
    return flat


def strayed(at: Cells, count: int, generator: torch.Generator) -> tuple[Cells, Cells]:
    """A few pieces put on other free cells, or left and turned, in any turn."""
    at, turns = at.clone(), torch.zeros_like(at)
    present = (at >= 0).nonzero()[:, 0]
    for cell in present[torch.randperm(len(present), generator=generator)[:count]].tolist():
        free = (at < 0).nonzero()[:, 0]
        quarter = int(torch.randint(0, 4, (), generator=generator))
        if len(free) == 0 or uniform(0.0, 1.0, generator) < 0.15:
            turns[cell] = max(1, quarter)
            continue
        target = int(free[int(torch.randint(len(free), (), generator=generator))])
        at[target], at[cell], turns[target] = int(at[cell]), -1, quarter
    return at, turns
