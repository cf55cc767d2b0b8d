"""The task of learning to denoise jigsaw puzzles."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from diffassemble.cutting.image import SMALLEST_PIECE, cut_picture
from diffassemble.datasets.config import DataConfig
from diffassemble.datasets.named import short_names
from diffassemble.datasets.store import load_picture, load_store, split_paths
from diffassemble.datasets.stream import PuzzleStream, seeded
from diffassemble.evaluation.metrics import direct_comparison, direct_comparison_free
from diffassemble.model.batch import pack
from diffassemble.model.denoiser import Denoiser
from diffassemble.puzzle import Board, Puzzle
from diffassemble.solvers.diffusion import denoise
from diffassemble.solvers.placement import place
from diffassemble.training.checks import check_jigsaw
from diffassemble.training.config import Config, JigsawRun
from diffassemble.training.losses import noise_weight, rotation_loss, translation_loss


class JigsawTask:
    """Puzzles from the configured pictures; the loss of section 3.3; accuracy on pictures held apart."""

    defaults: Config = JigsawRun()

    def __init__(self, config: JigsawRun) -> None:
        check_jigsaw(config)
        self.config = config
        self.batch = config.training.pieces, "pieces"
        splits = [split_paths(folder, config.data.held_apart) for folder in config.data.folders]
        smallest = smallest_picture(config.data)
        store = load_store([train for train, _ in splits], config.data.shares, smallest)
        self.stream = PuzzleStream(store, config.data, config.training.pieces, config.training.seed)
        self.held_apart = [
            (name, [load_picture(path, smallest) for path in held])
            for name, (_, held) in zip(short_names(config.data.folders), splits, strict=True)
        ]

    def build(self) -> Denoiser:
        """A fresh network."""
        return Denoiser(self.config.model)

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        """This process's part of the mean loss over the batch at `step`."""
        assert isinstance(model, Denoiser)
        training = self.config.training
        portion = self.stream.batch(step, rank, world)
        device = next(model.parameters()).device
        batch = pack(portion.puzzles, self.config.model.pairwise).to(device)
        drawn = self._noise(model, portion.puzzles, step, portion.first)
        clean, noise, time = (part.to(device) for part in drawn)
        generator = seeded(training.seed, step, portion.first, 2)
        predicted = model(model.schedule.noisy(clean, time, noise), time, model.condition(batch, generator))
        true_poses = model.space.to_poses(clean.flatten(0, 1))
        poses = model.space.to_poses(predicted.float().flatten(0, 1))
        weight = noise_weight(model.schedule.alpha_bar.to(device)[time]).flatten() if training.weigh_noise else None
        translation = training.translation_weight * translation_loss(true_poses, poses, weight)
        return portion.weight * (translation + training.rotation_weight * rotation_loss(true_poses, poses, weight))

    def _noise(self, model: Denoiser, puzzles: list[Puzzle], step: int, first: int) -> tuple[Tensor, Tensor, Tensor]:
        """Clean vectors, noise and times of all pieces; each puzzle has a generator and a time of its own."""
        noises = self.config.training.noises
        clean, noise, time = [], [], []
        for index, puzzle in enumerate(puzzles):
            assert puzzle.truth is not None
            generator = seeded(self.config.training.seed, step, first + index, 1)
            vector = model.space.to_vector(puzzle.truth)[:, None].expand(-1, noises, -1)
            clean.append(vector)
            noise.append(torch.randn(vector.shape, generator=generator))
            drawn = torch.randint(1, model.schedule.times + 1, (1, noises), generator=generator)
            time.append(drawn.expand(len(puzzle), -1))
        return torch.cat(clean), torch.cat(noise), torch.cat(time)

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Accuracy in percent on held-apart pictures, one sample each; "score" is the mean, orientation free."""
        assert isinstance(model, Denoiser)
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


def smallest_picture(data: DataConfig) -> int:
    """Fewest pixels a side from which every crop can be cut into every grid; one pixel a piece is for rounding."""
    return math.ceil(max(data.favourite, data.grids[1]) * (SMALLEST_PIECE + 1) / data.smallest_crop)


def validation_settings(data: DataConfig) -> list[tuple[int, float]]:
    """Grids and missing shares to validate on: the favourite one, the same with pieces missing, a larger one."""
    larger = min(10, data.grids[1])
    settings = [(data.favourite, 0.0)]
    settings += [(data.favourite, 0.3)] if data.missing > 0 else []
    return settings + ([(larger, 0.0)] if larger > data.favourite else [])


def accuracy(model: Denoiser, puzzles: list[Puzzle], steps: int = 15) -> tuple[float, float]:
    """Mean direct comparison of one sample a puzzle, absolute and orientation free, in percent."""
    absolute, free = 0.0, 0.0
    for start in range(0, len(puzzles), 8):
        group = puzzles[start : start + 8]
        batch = pack(group, model.config.pairwise)
        *_, (_, clean) = denoise(model, batch, steps, 1, seeded(78, start))
        for puzzle, vector in zip(group, clean[:, 0].split([len(p) for p in group]), strict=True):
            assert puzzle.truth is not None
            answer = place(model.space.to_poses(vector), puzzle.board)
            truth = puzzle.board.snap(puzzle.truth)
            absolute += direct_comparison(puzzle.board, *answer, *truth)
            free += direct_comparison_free(puzzle.board, *answer, *truth)
    return absolute / max(1, len(puzzles)), free / max(1, len(puzzles))
