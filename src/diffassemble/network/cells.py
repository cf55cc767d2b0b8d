"""X₀ as a distribution over the cells and turns of a board, instead of one pose.

Where several places are possible, a regression can only learn their mean, which is none of them; a distribution keeps
them apart and learns far faster. A node is a view, a piece in one of its four turns, and all weights are shared by the
views: logit(cell, turn) = ⟨what that view of the piece says, embedding of the cell⟩. So turning a piece only shifts the
turns, exactly, and one network serves every board. X̂₀ is the mean under the distribution: the diffusion is the paper's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diffassemble.core import Board, turn_matrix
from diffassemble.network.encoders.image import TURNS

_WAVES = 12
PLACE_FEATURES = 4 * _WAVES + 8

Logits = Float[Tensor, "n k c 4"]
"""of every cell and clockwise quarter turn; cells that a piece's board does not have are −∞"""


def place_features(board: Board) -> Float[Tensor, "c q"]:
    """What is told of every cell: where it lies, in waves, how far it is from each border, and the board's shape."""
    cells = torch.arange(board.cells)
    wave = math.pi * torch.arange(1, _WAVES + 1)
    parts = [board.centres()]
    for place, count in ((cells // board.cols, board.rows), (cells % board.cols, board.cols)):
        share = (place[:, None] + 0.5) / count * wave
        parts += [share.sin(), share.cos(), (-place[:, None]).exp(), (place[:, None] - count + 1.0).exp()]
        parts.append(torch.full((board.cells, 1), math.log(count) / 3))
    return torch.cat(parts, 1)


def cell_codes(board: Board) -> Float[Tensor, "c 4 4"]:
    """The vector (x, y, cos θ, sin θ) of every cell and turn."""
    turn = turn_matrix(torch.arange(TURNS))[:, :, 0]
    return torch.cat([board.centres()[:, None].expand(-1, TURNS, -1), turn.expand(board.cells, -1, -1)], -1)


def seen_from_views(vectors: Float[Tensor, "n k *o 4"]) -> Float[Tensor, "n 4 k *o 4"]:
    """Noisy poses as each view of a piece sees them: its rotation is (1, 0) where the view agrees with it."""
    place, turn = vectors[..., :2], vectors[..., 2:]
    back = turn_matrix(-torch.arange(TURNS, device=vectors.device)).to(vectors)
    turned = torch.einsum("vab,n...b->nv...a", back, turn)
    return torch.cat([place[:, None].expand(-1, TURNS, *[-1] * (place.dim() - 1)), turned], -1)


@dataclass(frozen=True)
class BoardCells:
    """A board's cells as the network knows them, and the pieces of a batch that belong on it."""

    board: Board
    pieces: Int[Tensor, "m"]
    embedding: Float[Tensor, "c w"]
    waves: Float[Tensor, "c q"]
    codes: Float[Tensor, "c 4 4"]


class CellScores(nn.Module):
    """Scores every cell for every view; heads that score share one embedding of the cells.

    Products of vectors are divided by `scale`, which brings them to about unit size.
    """

    def __init__(self, width: int, place_width: int, hidden: int = 0, scale: float = 8.0) -> None:
        super().__init__()
        self.scale = scale
        inner = hidden or width
        self.hidden = nn.Sequential(nn.Linear(width, hidden), nn.GELU()) if hidden else nn.Identity()
        self.score = nn.Linear(inner, place_width)
        # Without biases: what is added to all cells and turns alike changes no probability.
        self.bias = nn.Linear(place_width, 1, bias=False)
        self.turn = nn.Linear(inner, 1, bias=False)

    def forward(
        self, views: Float[Tensor, "n 4 k w"], boards: Sequence[BoardCells], opinions: Logits | None = None
    ) -> Logits:
        """The logits of pieces whose views say so; `opinions` are added."""
        inner = self.hidden(views)
        said, turn = self.score(inner), self.turn(inner)
        most = max(cells.board.cells for cells in boards)
        logits = said.new_full((len(views), views.shape[2], most, TURNS), -torch.inf, dtype=torch.float32)
        for cells in boards:
            own = said[cells.pieces] @ cells.embedding.T.to(said) / self.scale + self.bias(cells.embedding).squeeze(-1)
            own = (own + turn[cells.pieces]).float().permute(0, 2, 3, 1)
            if len(boards) == 1:
                return own if opinions is None else own + opinions
            logits[cells.pieces, :, : cells.board.cells] = own
        return logits if opinions is None else logits + opinions


class CellEmbedding(nn.Module):
    """Embeds the cells of boards, and tells views what a distribution over cells and turns says of them."""

    def __init__(self, place_width: int, width: int, hidden: int = 256) -> None:
        super().__init__()
        self.place = nn.Sequential(nn.Linear(PLACE_FEATURES, hidden), nn.GELU(), nn.Linear(hidden, place_width))
        self.first_guess = nn.Linear(place_width + PLACE_FEATURES + 1, width)
        self.before = nn.Linear(place_width + PLACE_FEATURES + 1, width)

    def boards(self, boards: Sequence[Board], puzzle: Int[Tensor, "n"]) -> list[BoardCells]:
        """The different boards of a batch, each with the pieces that belong on it."""
        found = []
        for board in dict.fromkeys(boards):
            of_board = torch.tensor([other == board for other in boards], device=puzzle.device)
            waves = place_features(board).to(puzzle.device)
            codes = cell_codes(board).to(puzzle.device)
            found.append(BoardCells(board, of_board[puzzle].nonzero()[:, 0], self.place(waves), waves, codes))
        return found

    @staticmethod
    def told(logits: Logits, boards: Sequence[BoardCells]) -> Float[Tensor, "n 4 k q"]:
        """Of every view how probable its turn is, and the mean of the cells' embeddings with it."""
        chance = logits.detach().flatten(2).softmax(-1).view_as(logits).permute(0, 3, 1, 2)
        answer: list[Tensor] = []
        for cells in boards:
            known = torch.cat([cells.embedding, cells.waves], 1)
            own = chance[cells.pieces][..., : cells.board.cells]
            answer.append(torch.cat([own @ known.to(own), TURNS * own.sum(-1, keepdim=True)], -1))
        if len(boards) == 1:
            return answer[0]
        order = torch.cat([cells.pieces for cells in boards]).argsort()
        return torch.cat(answer)[order]


def blocks(
    boards: Sequence[BoardCells], pieces: int, samples: int, most: int
) -> Iterator[tuple[slice, Sequence[BoardCells]]]:
    """Pieces in blocks of at most so many logits (cells × pieces × samples), with the boards as each block sees them.

    Boards of several puzzles at once are those of learning, which fit.
    """
    size = max(1, most // (samples * max(cells.board.cells for cells in boards)))
    if len(boards) > 1 or size >= pieces:
        yield slice(0, pieces), boards
        return
    for start in range(0, pieces, size):
        rows = torch.arange(min(size, pieces - start), device=boards[0].pieces.device)
        yield slice(start, start + size), [replace(boards[0], pieces=rows)]


def expected(logits: Logits, boards: Sequence[BoardCells]) -> Float[Tensor, "n k 4"]:
    """The mean vector (x, y, cos θ, sin θ) under the distribution: X̂₀."""
    chance = logits.flatten(2).softmax(-1).view_as(logits)
    if len(boards) == 1:
        return torch.einsum("nkct,ctp->nkp", chance, boards[0].codes.to(chance))
    mean = chance.new_zeros(*chance.shape[:2], 4)
    for cells in boards:
        own = chance[cells.pieces][:, :, : cells.board.cells]
        mean[cells.pieces] = torch.einsum("nkct,ctp->nkp", own, cells.codes.to(chance))
    return mean


def opinion_logits(
    trust: Float[Tensor, "n 4 k two_o"], seen: Float[Tensor, "n 4 k o 4"], boards: Sequence[BoardCells]
) -> Logits:
    """How far opinions on poses speak for each cell and turn: by nearness, and by turning the same way."""
    near, alike = trust.float().chunk(2, -1)
    turns = (alike * seen[..., 2].float()).sum(-1)
    most = max(cells.board.cells for cells in boards)
    logits = near.new_zeros(len(near), near.shape[2], most, TURNS)
    for cells in boards:
        centre = cells.codes[:, 0, :2] / cells.board.pitch
        place = seen[cells.pieces, 0, ..., :2].float() / cells.board.pitch
        apart = (place[..., None, :] - centre).square().sum(-1).log1p()  # m k o c
        own = turns[cells.pieces].permute(0, 2, 1)[:, :, None] - torch.einsum(
            "nvko,nkoc->nkcv", near[cells.pieces], apart
        )
        logits[cells.pieces, :, : cells.board.cells] = own
    return logits
