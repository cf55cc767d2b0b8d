"""What solvers that join trees of pieces show of their work."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from diffassemble.geometry import Poses, turn_matrix
from diffassemble.puzzle import Board, Puzzle, Step
from diffassemble.solvers.diffusion import content_order
from diffassemble.solvers.spanning import Forest


def in_content_order(puzzle: Puzzle, solve: Callable[[Puzzle], Iterator[Step]]) -> Iterator[Step]:
    """Solve the puzzle with its pieces listed by what they show, so that the answer does not depend on their order."""
    order = content_order(puzzle.pieces.content)
    back = order.argsort()
    for step in solve(puzzle.reordered(order)):
        yield Step(step.poses[back], step.done, None if step.confidence is None else step.confidence[back])


def lay_out(forest: Forest, board: Board) -> Poses:
    """Every tree around the middle of the cells that its pieces would have if they were listed row by row."""
    start = board.centres()[: len(forest.label)]
    place = torch.from_numpy(forest.place) * board.pitch
    label = torch.from_numpy(forest.label)
    offset = torch.zeros_like(start).index_add(0, label, start - place)
    offset = offset / torch.from_numpy(forest.size)[:, None]
    return Poses(turn_matrix(torch.from_numpy(forest.turn)), place + offset[label])
