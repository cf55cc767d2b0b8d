"""The task of learning to denoise jigsaw puzzles."""

from __future__ import annotations

import hashlib

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.core import Board, InputError, Puzzle
from diffassemble.core.board import SIDES
from diffassemble.core.seeds import seeded
from diffassemble.evaluation.metrics import direct_comparison, direct_comparison_free
from diffassemble.network.batch import MatchFinder, pack
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.encoders.image import PIECE_PIXELS, TURNS, frozen_features
from diffassemble.network.judge import denoise
from diffassemble.squares.cut import crop_to_board, cut_picture, fitted, tiles
from diffassemble.squares.edges import match_finder
from diffassemble.squares.placement import place, place_by_logits
from diffassemble.training.config import Config
from diffassemble.training.data import Portion, cached
from diffassemble.training.denoising import Denoising, DenoisingTraining, true_places
from diffassemble.training.pictures import DataConfig, Picture, PuzzleStream


class JigsawTask(Denoising):
    """Puzzles from the configured pictures; accuracy on pictures held apart."""

    defaults = Config(ModelConfig(), DataConfig(), DenoisingTraining())

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.stream = PuzzleStream(config)

    def check(self, config: Config) -> None:
        super().check(config)
        PuzzleStream.check(config)
        if config.model.space != "cos_sin":
            raise InputError(f"--model.space {config.model.space}: must be cos_sin, the poses of pictures")
        if (slots := config.model.contact_slots) != SIDES**2:
            raise InputError(f"--model.contact-slots {slots}: must be {SIDES**2} for square pieces")
        others = config.data.largest**2 - 1
        if config.model.degree > others:
            raise InputError(f"--model.degree {config.model.degree}: must be at most {others}, all other pieces")

    def portion(self, step: int, rank: int = 0, world: int = 1) -> Portion:
        return self.stream.batch(step, rank, world)

    def match_finder(self, model: PoseNetwork) -> MatchFinder | None:
        return match_finder(model)

    def frozen(self, portion: Portion) -> Float[Tensor, "n 4 p"] | None:
        """Features of the pieces by the pretrained encoder; those of pictures that come again are cached."""
        if self.config.model.backbone != "efficientnet":
            return None
        # In the precision of the training: half as many digits take less than half of the time.
        dtype = torch.bfloat16 if torch.is_autocast_enabled("cpu") else torch.float32
        given = [picture if self.config.data.cache else None for picture in portion.pictures]
        others = [puzzle for puzzle, picture in zip(portion.puzzles, given, strict=True) if picture is None]
        fresh = iter(())
        if others:
            found = frozen_features(torch.cat([puzzle.pixels for puzzle in others]), dtype)
            fresh = iter(found.split([len(puzzle) for puzzle in others]))
        return torch.cat(
            [
                next(fresh) if picture is None else self._cached_views(picture, puzzle, dtype)
                for puzzle, picture in zip(portion.puzzles, given, strict=True)
            ]
        )

    def _cached_views(self, picture: Picture, puzzle: Puzzle, dtype: torch.dtype) -> Float[Tensor, "n 4 p"]:
        """Features of a puzzle's pieces out of those of all cells of its picture."""
        board = puzzle.board
        whole = fitted(crop_to_board(picture, board), board, (PIECE_PIXELS, PIECE_PIXELS))
        name = hashlib.sha256(whole.numpy().tobytes()).hexdigest()

        def make() -> dict[str, Tensor]:
            return {"views": frozen_features(tiles(whole, board).float() / 255, dtype).half()}

        cells = cached(self.config.data.cache / name[:2] / f"{name[2:24]}.npz", make)["views"].float()
        # Turned on by k, a piece shows what its cell shows turned by k less its turn.
        cell, turn = true_places(puzzle)
        return cells[cell[:, None], (torch.arange(TURNS) - turn[:, None]) % TURNS]

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Accuracy in percent on held-apart pictures, one sample each; "score" is the mean, orientation free.

        Grids: the favourite one, the same with pieces missing, a larger one.
        """
        assert isinstance(model, PoseNetwork)
        data = self.config.data
        larger = min(10, data.grids[1])
        settings = [(data.favourite, 0.0), *([(data.favourite, 0.3)] if data.missing > 0 else [])]
        settings += [(larger, 0.0)] if larger > data.favourite else []
        scores, every = dict[str, float](), list[float]()
        for name, pictures in self.stream.held_apart:
            for grid, missing in settings:
                board = Board(grid, grid)
                puzzles = [
                    cut_picture(picture.float() / 255, board, seeded(77, index), size=32, missing=missing)
                    for index, picture in enumerate(pictures)
                ]
                absolute, free = accuracy(model, puzzles)
                label = f"{name} {grid}x{grid}" + (f" -{missing:.0%}" if missing else "")
                scores[label] = free
                every.append(free)
                if (grid, missing) == settings[0]:
                    scores[f"{label} absolute"] = absolute
        return {"score": sum(every) / max(1, len(every)), **scores}


def accuracy(model: PoseNetwork, puzzles: list[Puzzle], steps: int = 15) -> tuple[float, float]:
    """Mean direct comparison of one sample a puzzle, absolute and orientation free, in percent."""
    absolute, free = 0.0, 0.0
    for start in range(0, len(puzzles), 8):
        group = puzzles[start : start + 8]
        *_, (_, found) = denoise(model, pack(group, match_finder(model)), steps, 1, seeded(78, start))
        counts = [len(puzzle) for puzzle in group]
        logits = [None] * len(group) if found.logits is None else found.logits[:, 0].split(counts)
        for puzzle, vector, scores in zip(group, found.vectors[:, 0].split(counts), logits, strict=True):
            board, poses = puzzle.board, model.space.to_poses(vector)
            placement = (
                *(place(poses, board) if scores is None else place_by_logits(scores, board)),
                *true_places(puzzle),
            )
            absolute += direct_comparison(board, *placement)
            free += direct_comparison_free(board, *placement)
    return absolute / max(1, len(puzzles)), free / max(1, len(puzzles))
