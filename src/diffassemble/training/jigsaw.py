"""The task of learning to denoise jigsaw puzzles."""

from __future__ import annotations

import math
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.core import Board, InputError, Puzzle
from diffassemble.core.board import SIDES
from diffassemble.core.seeds import seeded
from diffassemble.evaluation.metrics import direct_comparison, direct_comparison_free
from diffassemble.network.batch import MatchFinder, pack
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.sampling import denoise
from diffassemble.squares.cut import SMALLEST_PIECE, cut_picture
from diffassemble.squares.edges import match_finder
from diffassemble.squares.placement import place, place_by_logits
from diffassemble.training.config import Config, DataConfig
from diffassemble.training.denoising import Denoising, DenoisingTraining, true_places
from diffassemble.training.frozen import FrozenViews
from diffassemble.training.pictures import HeldApart, Portion, PuzzleStream, load_picture, load_pictures


class JigsawTask(Denoising):
    """Puzzles from the configured pictures; accuracy on pictures held apart."""

    defaults = Config(ModelConfig(), DataConfig(), DenoisingTraining())

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.batch = config.training.pieces, "pieces"
        self.stream, self.held_apart = load_stream(config)
        self.views = FrozenViews(config.data.cache) if config.model.backbone == "efficientnet" else None

    def check(self, config: Config) -> None:
        super().check(config)
        check_room(config)
        if config.model.space != "cos_sin":
            raise InputError(f"--model.space {config.model.space}: must be cos_sin, the poses of pictures")
        if (slots := config.model.contact_slots) != SIDES**2:
            raise InputError(f"--model.contact-slots {slots}: must be {SIDES**2} for square pieces")
        others = config.data.largest**2 - 1
        if config.model.degree > others:
            raise InputError(f"--model.degree {config.model.degree}: must be at most {others}, all other pieces")

    def match_finder(self, model: PoseNetwork) -> MatchFinder | None:
        return match_finder(model)

    def frozen(self, portion: Portion) -> Float[Tensor, "n 4 p"] | None:
        return None if self.views is None else self.views(portion)

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Accuracy in percent on held-apart pictures, one sample each; "score" is the mean, orientation free."""
        assert isinstance(model, PoseNetwork)
        scores: dict[str, float] = {}
        first, *others = validation_settings(self.config.data)
        for name, pictures in self.held_apart:
            for grid, missing in (first, *others):
                board = Board(grid, grid)
                puzzles = [
                    cut_picture(picture.float() / 255, board, seeded(77, index), size=32, missing=missing)
                    for index, picture in enumerate(pictures)
                ]
                absolute, free = accuracy(model, puzzles)
                label = f"{name} {grid}x{grid}" + (f" -{missing:.0%}" if missing else "")
                scores[label] = free
                if (grid, missing) == first:
                    scores[f"{label} absolute"] = absolute
        free_scores = [value for label, value in scores.items() if not label.endswith("absolute")]
        return {"score": sum(free_scores) / max(1, len(free_scores)), **scores}


def check_room(config: Config) -> None:
    """Refuse batches that the largest puzzle does not fit into."""
    most, pieces = config.data.largest, config.training.pieces
    if pieces < most**2:
        wanted = f"{most**2} or more, so that a {most}x{most} puzzle fits into a batch; or lower --data.grids"
        raise InputError(f"--training.pieces {pieces}: must be {wanted}")


def load_stream(config: Config) -> tuple[PuzzleStream, HeldApart]:
    """The puzzles to learn from, and the pictures held apart; every crop of them can be cut into every grid."""
    data, training = config.data, config.training
    smallest = math.ceil(data.largest * (SMALLEST_PIECE + 1) / data.smallest_crop)  # one pixel a piece is for rounding
    store, held_apart = load_pictures(data, partial(load_picture, smallest=smallest))
    return PuzzleStream(store, data, training.pieces, training.seed), held_apart


def validation_settings(data: DataConfig) -> list[tuple[int, float]]:
    """Grids and missing shares to validate on: the favourite one, the same with pieces missing, a larger one."""
    larger = min(10, data.grids[1])
    settings = [(data.favourite, 0.0)]
    settings += [(data.favourite, 0.3)] if data.missing > 0 else []
    return settings + ([(larger, 0.0)] if larger > data.favourite else [])


def accuracy(model: PoseNetwork, puzzles: list[Puzzle], steps: int = 15) -> tuple[float, float]:
    """Mean direct comparison of one sample a puzzle, absolute and orientation free, in percent."""
    absolute, free = 0.0, 0.0
    for start in range(0, len(puzzles), 8):
        group = puzzles[start : start + 8]
        batch = pack(group, match_finder(model))
        *_, (_, found) = denoise(model, batch, steps, 1, seeded(78, start))
        counts = [len(p) for p in group]
        logits = [None] * len(group) if found.logits is None else found.logits[:, 0].split(counts)
        for puzzle, vector, scores in zip(group, found.vectors[:, 0].split(counts), logits, strict=True):
            poses = model.space.to_poses(vector)
            answer = place(poses, puzzle.board) if scores is None else place_by_logits(scores, puzzle.board)
            truth = true_places(puzzle)
            absolute += direct_comparison(puzzle.board, *answer, *truth)
            free += direct_comparison_free(puzzle.board, *answer, *truth)
    return absolute / max(1, len(puzzles)), free / max(1, len(puzzles))
