"""What a visitor sees first: a sample picture that is being put together."""

from __future__ import annotations

import skimage.data
import torch

from diffassemble.cutting.image import cut_picture
from diffassemble.puzzle import Assembly, Board
from diffassemble.solvers import assemble, make_solver


def example_answer() -> Assembly:
    """A photograph that scikit-image brings with it, cut and solved."""
    picture = torch.from_numpy(skimage.data.astronaut()).movedim(-1, 0).float() / 255
    puzzle = cut_picture(picture, Board(5, 5), torch.Generator().manual_seed(0), size=64)
    return assemble(puzzle, make_solver("diffusion", samples=2))
