"""The puzzles that solvers are measured on: the same for every solver, by the protocol of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from diffassemble.cutting.image import crop_to_board, cut_picture
from diffassemble.files.images import read_picture, to_image
from diffassemble.puzzle import Board, InputError, Puzzle


def benchmark_puzzles(
    pictures: Sequence[Path],
    board: Board,
    *,
    missing: float = 0.0,
    erode: int = 0,
    limit: int | None = None,
    seed: int = 0,
    size: int = 32,
) -> Iterator[tuple[Puzzle, torch.Generator]]:
    """Shuffled and turned puzzles, truth included, each with a generator for whoever solves it.

    Both follow from `seed` and the picture's place in the list. `limit` takes that many pictures, evenly
    spread over the list, since neighbours in a sorted folder often come from one source.
    """
    _check(pictures, missing, erode, limit, seed)
    count = min(limit or len(pictures), len(pictures))
    for index in (position * len(pictures) // count for position in range(count)):
        picture = benchmark_picture(read_picture(pictures[index]), board, size)
        yield (
            cut_picture(picture, board, _stream(seed, index, 0), size=size, missing=missing, erode=erode),
            _stream(seed, index, 1),
        )


def benchmark_picture(picture: Float[Tensor, "3 H W"], board: Board, size: int) -> Float[Tensor, "3 height width"]:
    """Centre crop of the board's shape, resized (Lanczos) to `size` pixels a cell.

    The result has whole 8-bit colours, as a picture from a file has: finer shades would tell border solvers
    more than any photo can.
    """
    image = to_image(crop_to_board(picture, board))
    resized = image.resize((board.cols * size, board.rows * size), Image.Resampling.LANCZOS)
    return torch.from_numpy(np.array(resized)).movedim(-1, 0).float() / 255


def _stream(seed: int, index: int, purpose: int) -> torch.Generator:
    """Randomness of its own for each picture and purpose (0: cutting, 1: solving)."""
    state = np.random.SeedSequence((seed, index, purpose)).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))


def _check(pictures: Sequence[Path], missing: float, erode: int, limit: int | None, seed: int) -> None:
    if not pictures:
        raise InputError("there are no pictures to evaluate on; pass a folder that holds some")
    if limit is not None and limit < 1:
        raise InputError(f"limit {limit} leaves no puzzles; pass a limit of at least 1")
    if not 0 <= missing < 1:
        raise InputError(f"missing {missing} is not a share of the pieces; pass 0 or more and less than 1")
    if erode < 0:
        raise InputError(f"erode {erode} is below 0; pass the pixels lost at every side, such as 2")
    if seed < 0:
        raise InputError(f"seed {seed} is below 0; pass 0 or more")
