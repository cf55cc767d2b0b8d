"""How like a picture a placement looks, and what that decides on boards with empty cells.

Borders hold parts of the picture together. Where pieces are missing, they can't tell by how far the largest part is
shifted, nor where small parts and lone pieces belong whose neighbours are all lost. What the picture shows often can:
faces stand in the middle, the sky is above. A critic compares them; what counts is the sum of both, in log odds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import torch
import torch.nn.functional as F
from annotated_types import Ge, MultipleOf
from jaxtyping import Float, Int, Int64
from torch import Tensor, nn

from diffassemble.core import Board, Puzzle, turn_pixels
from diffassemble.core.settings import Count, Fraction
from diffassemble.network.pretrained import Pretrained
from diffassemble.squares.energy import Energy, State
from diffassemble.squares.forest import turned
from diffassemble.squares.search import NOWHERE, segments

_UNKNOWN = 0.5
_TURNS = 4
# Placements that are looked at together.
_TOGETHER = 64
# The whole is shifted by up to so many cells; of the places of a part so many are looked at, the most valuable first.
_REACH, _LOOKED_AT = 2, 24
# How often all small parts are looked at again.
_ROUNDS = 2
# With more cells a side than this a cell is too small to be seen.
_MOST = 14

Tiles = Float[Tensor, "n 4 3 c c"]
OnCells = Int[Tensor, "k cells"]
Pieces = Int64[np.ndarray, "m"]


@dataclass(frozen=True)
class CriticConfig:
    """What the scoring network is made of."""

    size: Annotated[int, Ge(60), MultipleOf(60)] = 60
    """pixels a side at which placements are looked at"""
    stem: Count = 24
    """channels of the first convolution"""
    widths: tuple[Count, ...] = (48, 72, 96)
    """channels of the residual blocks, each at half the resolution of the one before"""
    hidden: Count = 64
    """width between what is seen and the score"""
    dropout: Fraction = 0.2


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
    def score(self, tiles: Tiles, at: OnCells, turns: OnCells, board: Board) -> Float[Tensor, "k"]:
        """Scores of placements: the piece on each cell, or −1, and its turn. The mirror images are asked, too."""
        scores = []
        for some, quarters in zip(at.split(_TOGETHER), turns.split(_TOGETHER), strict=True):
            pictures = laid(tiles, some, quarters, board, self.config.size)
            scores.append((self(pictures) + self(pictures.flip(-1))) / 2)
        return torch.cat(scores)


def tiles_of(pixels: Float[Tensor, "n 3 s s"], board: Board, size: int) -> Tiles:
    """Pieces, small enough for a picture of `size` pixels, in their four turns."""
    side = max(1, round(size / max(board.rows, board.cols)))
    small = F.interpolate(pixels, (side, side), mode="bilinear", antialias=True)
    return torch.stack([turn_pixels(small, torch.full((len(small),), turn)) for turn in range(_TURNS)], 1)


def laid(tiles: Tiles, at: OnCells, turns: OnCells, board: Board, size: int) -> Float[Tensor, "k 4 s s"]:
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


@dataclass(frozen=True)
class CriticReranker:
    """Says whether a placement should be another one; `weight` is how much the critic counts beside borders."""

    critic: Critic
    weight: float = 2.5

    def __call__(self, puzzle: Puzzle, energy: Energy, state: State) -> State:
        """The most valuable of what this placement could be; the same one if nothing is to be decided."""
        board = puzzle.board
        if len(puzzle) == board.cells or puzzle.locks is not None or max(board.rows, board.cols) > _MOST:
            return state
        tiles = tiles_of(puzzle.pixels, board, self.critic.config.size)
        # The whole in its best turn and shift, scored by its largest part.
        others = np.concatenate([np.zeros(0, np.int64), *parts(state, energy)[1:]])
        candidates = list(shifts(state, energy))
        state = self._best(candidates, [without(candidate, others) for candidate in candidates], energy, tiles)
        for _ in range(_ROUNDS):
            before = state
            for part in parts(state, energy)[1:]:
                places = sorted(placings(state, part, board), key=energy, reverse=True)[:_LOOKED_AT]
                state = self._best([state, *places], [state, *places], energy, tiles)
            if np.array_equal(before.where, state.where) and np.array_equal(before.turn, state.turn):
                break
        return state

    def _best(self, states: list[State], shown: list[State], energy: Energy, tiles: Tiles) -> State:
        at = torch.from_numpy(np.stack([state.at for state in shown]))
        turns = torch.from_numpy(np.stack([np.where(s.at >= 0, s.turn[s.at], 0) for s in shown]))
        looks = self.critic.score(tiles, at, turns, energy.board)
        energies = torch.tensor([energy(state) for state in states])
        return states[int((energies + self.weight * looks).argmax())]


def parts(state: State, energy: Energy) -> list[Pieces]:
    """The pieces that hold together by their borders, the largest part first."""
    label = np.empty(len(state.where), np.int64)
    segments(state.at, state.turn, energy.pairs, energy.board.cols, label)
    groups = [np.flatnonzero(label == root) for root in dict.fromkeys(label.tolist())]
    return sorted(groups, key=len, reverse=True)


def shifts(state: State, energy: Energy) -> Iterator[State]:
    """The placement itself, then in other turns and shifts of the whole; what falls off is put down by its borders."""
    board = energy.board
    yield state
    placed = np.flatnonzero(state.where >= 0)
    whole = torch.from_numpy(state.where[placed]), torch.from_numpy(state.turn[placed])
    for turn in board.fitting_turns():
        rows, cols = np.divmod(board.turned(*whole, turn)[1].numpy(), board.cols)
        for down in range(-_REACH, _REACH + 1):
            for right in range(-_REACH, _REACH + 1):
                if turn or down or right:
                    moved = _moved(state, placed, rows + down, cols + right, turn, board)
                    yield energy.filled(moved)


def placings(state: State, part: Pieces, board: Board) -> Iterator[State]:
    """A part, without the others moving, on all free places in all turns."""
    rest = without(state, part)
    place = np.stack([state.where[part] % board.cols, state.where[part] // board.cols], 1)
    for turn in range(4):
        own = turned(place, turn)
        own = own - own.min(0)
        for down in range(board.rows - int(own[:, 1].max())):
            for right in range(board.cols - int(own[:, 0].max())):
                cols, rows = (own + np.array([right, down])).T
                if (rest.at[rows * board.cols + cols] == NOWHERE).all():
                    yield _moved(rest, part, rows, cols, turn, board)


def without(state: State, pieces: Pieces) -> State:
    """The same placement, these pieces lying nowhere."""
    at, where = state.at.copy(), state.where.copy()
    lying = where[pieces]
    at[lying[lying >= 0]] = NOWHERE
    where[pieces] = NOWHERE
    return replace(state, at=at, where=where)


def _moved(state: State, pieces: Pieces, rows: Pieces, cols: Pieces, turn: int, board: Board) -> State:
    """Pieces taken up and put on these cells, turned on; those beyond the board lie nowhere."""
    fresh = without(state, pieces)
    quarter = state.turn.copy()
    quarter[pieces] = (quarter[pieces] + turn) % 4
    inside = (rows >= 0) & (rows < board.rows) & (cols >= 0) & (cols < board.cols)
    cells = rows[inside] * board.cols + cols[inside]
    fresh.at[cells], fresh.where[pieces[inside]] = pieces[inside], cells
    return replace(fresh, turn=quarter)
