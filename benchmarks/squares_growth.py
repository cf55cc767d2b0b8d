"""Two engines that grow square pieces along matches of their borders: seconds and accuracy of each.

`compiled` is `squares.gallagher.Forest` (Kruskal's algorithm, one numba kernel), which the solvers use; `generic` is
`assembly.growth.grown` with the constraint below: occupancy of a lattice, where the evidence for a join is the sum of
the log odds of all sides that then meet. Both are trimmed to the board and filled in the same way.
Run: python benchmarks/squares_growth.py [--grids 12 30] [--missing 0 0.2] [--erode 0 2] [--seeds 2]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import torch
from skimage import data

from diffassemble.assembly.growth import Constraint, GrowthPolicy, grown
from diffassemble.core import Board, Matches, Puzzle
from diffassemble.core.board import SIDES, WAYS
from diffassemble.evaluation.metrics import direct_comparison_free
from diffassemble.kinds.squares import bundled_edge_model
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import Evidence
from diffassemble.squares.energy import Energy, EnergyConfig, match_sides
from diffassemble.squares.gallagher import Forest

Cell = tuple[int, int]
UNLIKELY = -6.0


@dataclass
class Groups:
    """Pieces in groups: the group, cell (x, y) and turn of each, and the piece on every cell of a group."""

    label: list[int]
    cell: list[Cell]
    turn: list[int]
    at: list[dict[Cell, int]] = field(default_factory=list)


class LatticeOccupancy(Constraint[Groups, int]):
    """Joins are matches, by their number; two groups may not share a cell."""

    def __init__(self, matches: Matches, count: int, least: float) -> None:
        sides, odds = match_sides(matches), matches.log_odds.clamp(UNLIKELY, -UNLIKELY).tolist()
        self.count = count
        self.odds: dict[tuple[int, int], float] = {}
        self.sides: list[tuple[int, int]] = []
        self.of_piece: list[list[int]] = [[] for _ in range(count)]
        for (own, other), value in zip(sides.tolist(), odds, strict=True):
            fresh = (other, own) not in self.odds and (own, other) not in self.odds
            self.odds[own, other] = self.odds[other, own] = max(value, self.odds.get((own, other), UNLIKELY))
            if fresh and value >= least:
                for piece in (own // SIDES, other // SIDES):
                    self.of_piece[piece].append(len(self.sides))
                self.sides.append((own, other))

    def begin(self) -> Groups:
        every = range(self.count)
        return Groups(list(every), [(0, 0)] * self.count, [0] * self.count, [{(0, 0): piece} for piece in every])

    def proposals(self, state: Groups) -> Iterable[int]:
        return range(len(self.sides))

    def _moved(self, state: Groups, join: int) -> tuple[int, int, dict[Cell, int], int] | None:
        """The group that stays, the one that moves, its pieces by new cells, and its turn; None if they collide."""
        own, other = self.sides[join]
        if len(state.at[state.label[own // SIDES]]) < len(state.at[state.label[other // SIDES]]):
            own, other = other, own
        stays, moves = state.label[own // SIDES], state.label[other // SIDES]
        if stays == moves:
            return None
        facing = (own + state.turn[own // SIDES]) % SIDES
        by = (facing + 2 - other - state.turn[other // SIDES]) % SIDES
        (x, y), (dx, dy) = state.cell[own // SIDES], WAYS[facing].tolist()
        from_x, from_y = turned(state.cell[other // SIDES], by)
        found = {}
        for cell, piece in state.at[moves].items():
            there = turned(cell, by)
            goal = there[0] - from_x + x + dx, there[1] - from_y + y + dy
            if goal in state.at[stays]:
                return None
            found[goal] = piece
        return stays, moves, found, by

    def evidence(self, state: Groups, join: int) -> float:
        moved = self._moved(state, join)
        if moved is None:
            return -np.inf
        stays, _, found, by = moved
        total = 0.0
        for (x, y), piece in found.items():
            for way, (dx, dy) in enumerate(WAYS.tolist()):
                other = state.at[stays].get((x + dx, y + dy))
                if other is not None:
                    own_side = SIDES * piece + (way - state.turn[piece] - by) % SIDES
                    other_side = SIDES * other + (way + 2 - state.turn[other]) % SIDES
                    total += self.odds.get((own_side, other_side), UNLIKELY)
        return total

    def join(self, state: Groups, join: int) -> Iterable[int]:
        moved = self._moved(state, join)
        assert moved is not None
        stays, moves, found, by = moved
        for cell, piece in found.items():
            state.label[piece], state.cell[piece], state.at[stays][cell] = stays, cell, piece
            state.turn[piece] = (state.turn[piece] + by) % SIDES
        state.at[moves] = {}
        return dict.fromkeys(match for piece in state.at[stays].values() for match in self.of_piece[piece])

    def total(self, state: Groups) -> float:
        return 0.0


def turned(cell: Cell, by: int) -> Cell:
    """A cell after clockwise quarter turns about the origin."""
    x, y = cell
    for _ in range(by % SIDES):
        x, y = -y, x
    return x, y


def compiled(matches: Matches, count: int) -> Forest:
    """Kruskal's algorithm along the matches, the most probable first."""
    forest = Forest.of(count)
    forest.join(match_sides(matches[matches.probability.argsort(descending=True, stable=True)]), count)
    return forest


def generic(matches: Matches, count: int) -> Forest:
    """Best-first growth along likely matches, then Kruskal's algorithm along the others."""
    state = grown(LatticeOccupancy(matches, count, -2.0), GrowthPolicy(least=-2.0)).state
    first = Forest.of(count)
    # Groups become trees: joined along those of their matches that they realise.
    sides = match_sides(matches)
    one, two = sides.T // SIDES
    label, turn, cell = np.array(state.label), np.array(state.turn), np.array(state.cell)
    way = (sides[:, 0] + turn[one]) % SIDES
    realised = (label[one] == label[two]) & (cell[two] - cell[one] == WAYS[way]).all(1)
    realised &= (sides[:, 1] + turn[two] - way - 2) % SIDES == 0
    first.join(sides[realised], count)
    first.join(match_sides(matches[matches.probability.argsort(descending=True, stable=True)]), count)
    return first


def score(puzzle: Puzzle, forest: Forest, energy: Energy) -> float:
    """Percent of the pieces in place, orientation free, once the largest tree is trimmed and the rest filled in."""
    placement = energy.improve(energy.state(*forest.trimmed(puzzle.board))).placement
    assert puzzle.truth is not None
    return direct_comparison_free(puzzle.board, *placement, *puzzle.board.snap(puzzle.truth))


def main() -> None:
    """Cut pictures that come with scikit-image, grow, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--grids", type=int, nargs="+", default=[12, 30])
    parser.add_argument("--missing", type=float, nargs="+", default=[0.0, 0.2])
    parser.add_argument("--erode", type=int, nargs="+", default=[0, 2])
    parser.add_argument("--seeds", type=int, default=2)
    given, config = parser.parse_args(), EnergyConfig()
    pictures = [torch.from_numpy(getattr(data, name)()).permute(2, 0, 1).float() / 255 for name in ("coffee", "rocket")]
    for grid in given.grids:
        for missing in given.missing:
            for erode in given.erode:
                rows: list[tuple[float, float]] = []
                for seed in range(given.seeds):
                    generator = torch.Generator().manual_seed(seed)
                    picture, board = pictures[seed % len(pictures)], Board(grid, grid)
                    puzzle = cut_picture(picture, board, generator, size=24, missing=missing, erode=erode)
                    matches = Evidence(puzzle.pixels).matches(board.pitch, config.matches, bundled_edge_model())
                    energy = Energy.of_borders(matches, puzzle, listed=False)
                    for engine in (compiled, generic):
                        if not rows:
                            engine(matches, len(puzzle))  # compiles
                        began = time.perf_counter()
                        forest = engine(matches, len(puzzle))
                        rows.append((time.perf_counter() - began, score(puzzle, forest, energy)))
                (fast, plain), (slow, best) = (np.mean(rows[start::2], 0) for start in (0, 1))
                print(
                    f"{grid:3d}x{grid:<3d} {100 * missing:3.0f} % missing, {erode} px eroded: compiled {fast:7.3f} s "
                    f"{plain:5.1f} %   generic {slow:7.2f} s {best:5.1f} %",
                    flush=True,
                )


if __name__ == "__main__":
    main()
