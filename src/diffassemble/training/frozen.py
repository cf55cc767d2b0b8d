"""What a pretrained network shows of the pieces of training puzzles; it never learns, so it is asked once a picture."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.core import Board, Puzzle
from diffassemble.io.atomic import write_file
from diffassemble.network.encoders.image import PIECE_PIXELS, TURNS, frozen_features
from diffassemble.squares.cut import crop_to_board, fitted, tiles
from diffassemble.training.pictures import Portion, Source


class FrozenViews:
    """The frozen features of all pieces of a batch; pictures that come again are kept in a folder, if there is one."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def __call__(self, portion: Portion) -> Float[Tensor, "n 4 p"]:
        # In the precision of the training: half as many digits take less than half of the time.
        dtype = torch.bfloat16 if torch.is_autocast_enabled("cpu") else torch.float32
        known = dict[int, Tensor]()
        for index, (puzzle, source) in enumerate(zip(portion.puzzles, portion.sources, strict=True)):
            if source is not None and self.folder is not None:
                known[index] = _of_pieces(self._kept(self.folder, source, puzzle.board, dtype), puzzle)
        others = [index for index in range(len(portion.puzzles)) if index not in known]
        if others:
            counts = [len(portion.puzzles[index]) for index in others]
            found = frozen_features(torch.cat([portion.puzzles[index].pixels for index in others]), dtype)
            known.update(zip(others, found.split(counts), strict=True))
        return torch.cat([known[index] for index in range(len(portion.puzzles))])

    def _kept(self, folder: Path, source: Source, board: Board, dtype: torch.dtype) -> Float[Tensor, "c 4 p"]:
        """Of the whole picture, cell by cell; from the folder, or looked at now and kept."""
        whole = fitted(crop_to_board(source.picture, board), board, (PIECE_PIXELS, PIECE_PIXELS))
        name = hashlib.sha256(whole.numpy().tobytes()).hexdigest()
        path = folder / name[:2] / f"{name[2:24]}.npy"
        try:
            return torch.from_numpy(np.load(path)).float()
        except (OSError, ValueError, EOFError):  # not there, or cut short by a kill
            found = frozen_features(tiles(whole, board).float() / 255, dtype)
        content = io.BytesIO()
        np.save(content, found.half().numpy())
        write_file(path, content.getbuffer())
        return found.half().float()


def _of_pieces(cells: Float[Tensor, "c 4 p"], puzzle: Puzzle) -> Float[Tensor, "n 4 p"]:
    """The views of a puzzle's pieces: turned on by k, a piece shows what its cell shows turned by k less its turn."""
    assert puzzle.truth is not None
    cell, turn = puzzle.board.snap(puzzle.truth)
    return cells[cell[:, None], (torch.arange(TURNS) - turn[:, None]) % TURNS]
