"""The arrays of the search say what the energy says."""

from __future__ import annotations

import numpy as np
import torch

from diffassemble.core import Board
from diffassemble.squares.baselines.filling import touching_sides
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import image_matches
from diffassemble.squares.energy import Terms, border_gains


def test_the_worth_of_a_placement_is_the_sum_over_touching_sides_and_places() -> None:
    generator, board = torch.Generator().manual_seed(0), Board(3, 4)
    puzzle = cut_picture(torch.rand(3, 48, 64, generator=generator), board, generator, size=16)
    matches = image_matches(puzzle.pixels, board.pitch, 6)
    unary = torch.rand(12, 4, 12, generator=generator)
    terms = Terms.of(matches, unary, board)
    cells, turns = torch.randperm(12, generator=generator), torch.randint(0, 4, (12,), generator=generator)
    state = terms.state(cells, turns)
    first, second = touching_sides(board, cells, turns)
    gains = border_gains(matches, 12) + 6.0 * terms.doubt
    wanted = gains[first, second].sum() / 2 + unary[torch.arange(12), turns, cells].sum()
    assert abs(terms.worth(state) - float(wanted)) < 1e-3
    (found_cells, found_turns), sure = terms.answer(state)
    assert torch.equal(found_cells, cells)
    assert torch.equal(found_turns, turns)
    assert bool(((sure >= 0) & (sure <= 1)).all())


def test_improving_never_loses_worth() -> None:
    generator, board = torch.Generator().manual_seed(1), Board(4, 4)
    ramp = torch.linspace(0, 1, 64)
    picture = torch.stack([ramp[None].expand(64, -1), ramp[:, None].expand(-1, 64), ramp[None] * ramp[:, None]])
    puzzle = cut_picture(picture + 0.02 * torch.rand(3, 64, 64, generator=generator), board, generator, size=16)
    terms = Terms.of(image_matches(puzzle.pixels, board.pitch, 8), torch.zeros(16, 4, 16), board)
    start = terms.state(torch.randperm(16, generator=generator), torch.zeros(16, dtype=torch.long))
    found = terms.improve(start, 50, 1.0, 0.0, np.random.default_rng(0))
    assert terms.worth(found) >= terms.worth(start)
