"""Heads that give X₀ as a distribution instead of one pose; X̂₀ is its mean, so that the diffusion is the paper's.

A node is a view, a piece in one of its four turns, and all weights are shared by the views: logit(cell, turn) =
⟨output of that view, embedding of the cell⟩. So turning a piece only shifts the turns, exactly, and one network serves
every board. `MatchScores` gives the log odds of matches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from diffassemble.core import Board, Matches, Poses, turn_matrix
from diffassemble.core.matches import CHANNELS
from diffassemble.network.encoders.image import TURNS
from diffassemble.network.evidence import ESTIMATES, Estimates, residuals

Logits = Float[Tensor, "n k c 4"]
"""of every cell and clockwise quarter turn; cells that a piece's board does not have are −∞"""
RotationLogits = Float[Tensor, "n k turns"]
"""of every rotation of the grid"""


def place_features(board: Board, waves: int = 12) -> Float[Tensor, "c q"]:
    """Of every cell its place as waves, its distance from each border, and the board's shape."""
    cells = torch.arange(board.cells)
    wave = math.pi * torch.arange(1, waves + 1)
    parts = [board.centres()]
    for place, count in ((cells // board.cols, board.rows), (cells % board.cols, board.cols)):
        share = (place[:, None] + 0.5) / count * wave
        parts += [share.sin(), share.cos(), (-place[:, None]).exp(), (place[:, None] - count + 1.0).exp()]
        parts.append(torch.full((board.cells, 1), math.log(count) / 3))
    return torch.cat(parts, 1)


PLACE_FEATURES = place_features(Board(1, 1)).shape[1]


def seen_from_views(vectors: Float[Tensor, "n k *o 4"]) -> Float[Tensor, "n 4 k *o 4"]:
    """Noisy poses in the frame of each view of a piece: the rotation is (1, 0) where the view agrees with it."""
    place, turn = vectors[..., :2], vectors[..., 2:]
    back = turn_matrix(-torch.arange(TURNS, device=vectors.device)).to(vectors)
    turned = torch.einsum("vab,n...b->nv...a", back, turn)
    return torch.cat([place[:, None].expand(-1, TURNS, *[-1] * (place.dim() - 1)), turned], -1)


@dataclass(frozen=True)
class BoardCells:
    """The embedded cells of a board, and the pieces of a batch that belong on it."""

    board: Board
    pieces: Int[Tensor, "m"]
    embedding: Float[Tensor, "c w"]
    waves: Float[Tensor, "c q"]
    codes: Float[Tensor, "c 4 4"]
    """the vector (x, y, cos θ, sin θ) of every cell and turn"""


def _in_order(parts: Sequence[Tensor], boards: Sequence[BoardCells]) -> Tensor:
    """Values of the pieces of each board as values of all pieces."""
    if len(parts) == 1:
        return parts[0]
    return torch.cat(list(parts))[torch.cat([cells.pieces for cells in boards]).argsort()]


class CellScores(nn.Module):
    """Scores every cell for every view by products with embeddings of the cells, divided by `scale`."""

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
        self, views: Float[Tensor, "n 4 k w"], boards: Sequence[BoardCells], prior: Logits | None = None
    ) -> Logits:
        """The logits of pieces by their views, added to those of the `prior`."""
        inner = self.hidden(views)
        query, turn, parts = self.score(inner), self.turn(inner), []
        most = max(cells.board.cells for cells in boards)
        for cells in boards:
            own = query[cells.pieces] @ cells.embedding.T.to(query) / self.scale
            own = own + self.bias(cells.embedding).squeeze(-1)
            own = (own + turn[cells.pieces]).float().permute(0, 2, 3, 1)
            parts.append(F.pad(own, (0, 0, 0, most - cells.board.cells), value=-torch.inf))
        logits = _in_order(parts, boards)
        return logits if prior is None else logits + prior


class CellEmbedding(nn.Module):
    """Embeds the cells of boards, and summarises a distribution over cells and turns for each view."""

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
            turn = turn_matrix(torch.arange(TURNS))[:, :, 0].expand(board.cells, -1, -1)
            codes = torch.cat([board.centres()[:, None].expand(-1, TURNS, -1), turn], -1).to(puzzle.device)
            found.append(BoardCells(board, of_board[puzzle].nonzero()[:, 0], self.place(waves), waves, codes))
        return found

    @staticmethod
    def summary(logits: Logits, boards: Sequence[BoardCells]) -> Float[Tensor, "n 4 k q"]:
        """Of every view the probability of its turn, and the mean embedding of the cells with it."""
        chance = logits.detach().flatten(2).softmax(-1).view_as(logits).permute(0, 3, 1, 2)
        parts: list[Tensor] = []
        for cells in boards:
            known = torch.cat([cells.embedding, cells.waves], 1)
            own = chance[cells.pieces][..., : cells.board.cells]
            parts.append(torch.cat([own @ known.to(own), TURNS * own.sum(-1, keepdim=True)], -1))
        return _in_order(parts, boards)


def blocks(
    boards: Sequence[BoardCells], pieces: int, samples: int, most: int
) -> Iterator[tuple[slice, Sequence[BoardCells]]]:
    """Pieces in blocks of at most so many logits (cells × pieces × samples), each with its boards."""
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
    own = [chance if len(boards) == 1 else chance[one.pieces][:, :, : one.board.cells] for one in boards]
    parts = [torch.einsum("nkct,ctp->nkp", part, one.codes.to(chance)) for part, one in zip(own, boards, strict=True)]
    return _in_order(parts, boards)


def estimate_logits(
    trust: Float[Tensor, "n 4 k two_o"], seen: Float[Tensor, "n 4 k o 4"], boards: Sequence[BoardCells]
) -> Logits:
    """Logits of every cell and turn by its nearness to estimates of the pose, weighted by the trust in each."""
    near, alike = trust.float().chunk(2, -1)
    turns = (alike * seen[..., 2].float()).sum(-1).permute(0, 2, 1)[:, :, None]
    most, parts = max(cells.board.cells for cells in boards), []
    for cells in boards:
        centre = cells.codes[:, 0, :2] / cells.board.pitch
        place = seen[cells.pieces, 0, ..., :2].float() / cells.board.pitch
        apart = (place[..., None, :] - centre).square().sum(-1).log1p()  # m k o c
        own = turns[cells.pieces] - torch.einsum("nvko,nkoc->nkcv", near[cells.pieces], apart)
        parts.append(F.pad(own, (0, 0, 0, most - cells.board.cells)))
    return _in_order(parts, boards)


@dataclass(frozen=True)
class MatchScoreConfig:
    """Angles, in radians, and distances, in units; the weights were trained with these numbers."""

    close: tuple[float, float] = (0.1, 0.03)
    """within which an estimate supports a match closely"""
    rough: tuple[float, float] = (0.4, 0.15)
    """within which it does so roughly"""
    true: tuple[float, float] = (0.2, 0.08)
    """within which a match is true"""
    hidden: int = 48
    """width of the hidden layers"""


DEFAULT = MatchScoreConfig()


class MatchScores(nn.Module):
    """Log odds of matches: those of the matcher, and a correction by both nodes and by how closely estimates agree.

    An estimate made without a match that still agrees with it closes a loop.
    """

    def __init__(self, width: int, config: MatchScoreConfig = DEFAULT) -> None:
        super().__init__()
        self.config, hidden = config, config.hidden
        self.first, self.second = nn.Linear(width, hidden), nn.Linear(width, hidden)
        self.own = nn.Linear(CHANNELS + 1 + 2 * ESTIMATES, hidden)
        correction = nn.Linear(hidden, 1)
        nn.init.zeros_(correction.weight)
        nn.init.zeros_(correction.bias)
        self.last = nn.Sequential(nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), correction)

    def forward(
        self, nodes: Float[Tensor, "n k w"], matches: Matches, estimates: Estimates, unit: Float[Tensor, "n"]
    ) -> Float[Tensor, "m k"]:
        """Log odds of every match in every sample."""
        angle, far = residuals(matches, estimates.rotation, estimates.place)
        far = far / unit[matches.first, None, None]
        agreement = [
            torch.exp(-0.5 * ((angle / turn).square() + (far / shift).square()))
            for turn, shift in (self.config.close, self.config.rough)
        ]
        chance = matches.probability.clamp(1e-4, 1 - 1e-4)
        odds = torch.log(chance / (1 - chance))
        known = torch.cat([matches.evidence, odds[:, None] / 4], 1)[:, None].expand(-1, nodes.shape[1], -1)
        own = self.own(torch.cat([known, *agreement], -1))
        joined = own + self.first(nodes)[matches.first] + self.second(nodes)[matches.second]
        return odds[:, None] + self.last(joined)[..., 0].float()


def verdict_loss(
    verdict: Float[Tensor, "m k"],
    matches: Matches,
    true: Poses,
    unit: Float[Tensor, "n"],
    config: MatchScoreConfig = DEFAULT,
) -> Float[Tensor, ""]:
    """Cross-entropy of whether each match is true; `true` has the poses of k samples, piece by piece."""
    samples = verdict.shape[1]
    rotation, place = (part.unflatten(0, (-1, samples))[:, :1] for part in (true.rotation, true.translation))
    angle, far = residuals(matches, rotation, place)
    right = (angle < config.true[0]) & (far < config.true[1] * unit[matches.first, None])
    return F.binary_cross_entropy_with_logits(verdict, right.float().expand_as(verdict))
