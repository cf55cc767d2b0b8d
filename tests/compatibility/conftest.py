"""Puzzles whose true neighbours are known."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from skimage import data
from torch import Tensor

from diffassemble.core import Board, Matches, Poses, Puzzle
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import matches_of_sides

CHANNELS = 2


def photo(name: str) -> Tensor:
    return torch.from_numpy(getattr(data, name)()).permute(2, 0, 1).float() / 255


@pytest.fixture(params=["astronaut", "coffee", "chelsea"])
def photo_puzzle(request: pytest.FixtureRequest) -> Puzzle:
    """A photo cut 6 × 6, pieces of 32 pixels, shuffled and turned."""
    return cut_picture(photo(request.param), Board(6, 6), torch.Generator().manual_seed(0), size=32)


@pytest.fixture
def small_puzzle() -> Puzzle:
    """Eleven of the twelve pieces of a 3 × 4 photo."""
    return cut_picture(photo("coffee"), Board(3, 4), torch.Generator().manual_seed(1), size=16, missing=0.1)


@pytest.fixture(scope="session")
def true_sides() -> Callable[[Board, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """All pairs of sides that touch when pieces lie on the given cells at the given turns."""

    def touching(board: Board, cells: Tensor, turns: Tensor) -> tuple[Tensor, Tensor]:
        at = {divmod(cell, board.cols): piece for piece, cell in enumerate(cells.tolist())}
        pairs = []
        for (row, col), first in at.items():
            for way, (down, right) in enumerate([(0, 1), (1, 0), (0, -1), (-1, 0)]):
                second = at.get((row + down, col + right))
                if second is not None:
                    # A piece turned by t shows side a to the way a + t.
                    sides = (way - int(turns[first])) % 4, (way + 2 - int(turns[second])) % 4
                    pairs.append((4 * first + sides[0], 4 * second + sides[1]))
        first_side, second_side = torch.tensor(pairs, dtype=torch.long).view(-1, 2).unbind(1)
        return first_side, second_side

    return touching


@pytest.fixture(scope="session")
def solved(true_sides: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., tuple[Poses, Matches]]:
    """A true assembly of `count` pieces and its true matches, whose random evidence is `least` to 1."""

    def make(board: Board, count: int, seed: int = 0, least: float = 0.01) -> tuple[Poses, Matches]:
        generator = torch.Generator().manual_seed(seed)
        cells = torch.randperm(board.cells, generator=generator)[:count]
        turns = torch.randint(0, 4, (count,), generator=generator)
        first, second = true_sides(board, cells, turns)
        evidence = least + (1 - least) * torch.rand(len(first), CHANNELS, generator=generator)
        return board.poses(cells, turns), matches_of_sides(first, second, board.pitch, evidence)

    return make


@pytest.fixture(scope="session")
def solved_in_space() -> Callable[..., tuple[Poses, Matches]]:
    """Three-dimensional pieces, turned at will, about one unit from their neighbours; matches join all of these."""

    def make(side: int, seed: int = 0, least: float = 0.01) -> tuple[Poses, Matches]:
        generator = torch.Generator().manual_seed(seed)
        axis = torch.arange(side)
        corners = torch.cartesian_prod(axis, axis, axis).view(-1, 3)
        rotation = torch.linalg.qr(torch.randn(len(corners), 3, 3, generator=generator, dtype=torch.double))[0]
        rotation[..., 0] *= torch.linalg.det(rotation)[:, None]
        jitter = 0.2 * torch.rand(corners.shape, generator=generator)
        truth = Poses(rotation.float(), corners + jitter)
        first, second = ((corners[:, None] - corners).abs().sum(-1) == 1).nonzero().unbind(1)
        relative = truth[second].inverse() @ truth[first]
        evidence = least + (1 - least) * torch.rand(len(first), CHANNELS, generator=generator)
        return truth, Matches(first, second, relative, torch.zeros_like(first), evidence)

    return make
