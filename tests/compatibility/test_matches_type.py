"""Every kind of puzzle finds its matches by the same name."""

import torch

from diffassemble.core import Board
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edge_model import TERMS, EdgeCompatibility, find_matches, learned_matches
from diffassemble.squares.edges import image_matches


def test_pictures_are_compared_by_their_borders() -> None:
    generator = torch.Generator().manual_seed(0)
    puzzle = cut_picture(torch.rand(3, 64, 64, generator=generator), Board(2, 2), generator, size=32)
    found, wanted = find_matches(puzzle), image_matches(puzzle.pixels, puzzle.board.pitch)
    assert torch.equal(found.first, wanted.first)
    assert torch.equal(found.evidence, wanted.evidence)
    compatibility = EdgeCompatibility(
        torch.zeros(16, 1), torch.zeros(16, 1), torch.tensor(0.0), torch.full((TERMS,), 0.1), 0
    )
    found = find_matches(puzzle, lambda pixels: compatibility, keep=3)
    wanted = learned_matches(puzzle.pixels, puzzle.board.pitch, lambda pixels: compatibility, keep=3)
    assert len(found) == 16 * 3
    assert torch.equal(found.evidence, wanted.evidence)
