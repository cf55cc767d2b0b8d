"""Puzzles whose answers are known, and solvers that are given them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from PIL import Image, ImageFilter
from skimage import data
from torch import Tensor

from diffassemble.core import Board, Matches, Poses, Puzzle, Step
from diffassemble.network.batch import PuzzleBatch
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import Condition, Denoiser, Prediction
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import Borders, matches_of_sides
from diffassemble.squares.placement import touching_sides

CHANNELS = 2


def photo(name: str) -> Tensor:
    return torch.from_numpy(getattr(data, name)()).permute(2, 0, 1).float() / 255


class Oracle(Denoiser):
    """Predicts the truth whatever the noise; sample k is turned as a whole by `wholes[k]` quarter turns."""

    def __init__(self, puzzle: Puzzle, wholes: tuple[int, ...] = (0,), times: int = 300) -> None:
        super().__init__(ModelConfig(features=4, width=16, layers=1, heads=2, pose_width=8, time_width=8, times=times))
        self.puzzle = puzzle
        placements = [puzzle.board.turned(*puzzle.board.snap(puzzle.truth), by) for by in wholes]
        self.answers = torch.stack([self.space.to_vector(board.poses(*rest)) for board, *rest in placements], 1)

    def condition(self, batch: PuzzleBatch, generator: torch.Generator | None = None) -> Condition:
        same = batch.content[:, None] == self.puzzle.pieces.pixels[None]
        self.listed = same.flatten(2).all(-1).int().argmax(1)
        return super().condition(batch, generator)

    def predict(
        self, noisy: Tensor, time: Tensor, condition: Condition, before: Prediction | None = None
    ) -> Prediction:
        return Prediction(self.answers[self.listed].expand_as(noisy))


@pytest.fixture
def oracle() -> type[Oracle]:
    return Oracle


@dataclass(frozen=True)
class ReadingOrder:
    """Knows the pieces' order and turns, and lays them row by row on whatever board it gets."""

    puzzle: Puzzle
    name: str = "reading order"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        cells, turns = self.puzzle.board.snap(self.puzzle.truth)
        yield Step(puzzle.board.poses(cells.argsort().argsort(), turns), 1.0)


@pytest.fixture
def reading_order() -> type[ReadingOrder]:
    return ReadingOrder


@pytest.fixture(params=["astronaut", "coffee", "chelsea"])
def photo_puzzle(request: pytest.FixtureRequest) -> Puzzle:
    """A photo cut 6 × 6, pieces of 32 pixels, shuffled and turned."""
    return cut_picture(photo(request.param), Board(6, 6), torch.Generator().manual_seed(0), size=32)


@pytest.fixture
def small_puzzle() -> Puzzle:
    """Eleven of the twelve pieces of a 3 × 4 photo."""
    return cut_picture(photo("coffee"), Board(3, 4), torch.Generator().manual_seed(1), size=16, missing=0.1)


@pytest.fixture(scope="session")
def border_scores() -> Callable[[Tensor], Tensor]:
    """The scores of all pairs of sides."""

    def make(pixels: Tensor) -> Tensor:
        borders = Borders.of(pixels)
        every = torch.arange(len(borders))
        return borders.scores(every, every)

    return make


@pytest.fixture(scope="session")
def solved() -> Callable[..., tuple[Poses, Matches]]:
    """A true assembly of `count` pieces and its true matches, whose random evidence is `least` to 1."""

    def make(board: Board, count: int, seed: int = 0, least: float = 0.01) -> tuple[Poses, Matches]:
        generator = torch.Generator().manual_seed(seed)
        cells = torch.randperm(board.cells, generator=generator)[:count]
        turns = torch.randint(0, 4, (count,), generator=generator)
        first, second = touching_sides(board, cells, turns)
        evidence = least + (1 - least) * torch.rand(len(first), CHANNELS, generator=generator)
        return board.poses(cells, turns), matches_of_sides(first, second, board.pitch, evidence)

    return make


@pytest.fixture(scope="session")
def solved_in_space() -> Callable[..., tuple[Poses, Matches]]:
    """Three-dimensional pieces, turned at will, about one unit from their neighbours; matches join all of these."""

    def make(side: int, seed: int = 0, least: float = 0.01) -> tuple[Poses, Matches]:
        generator = torch.Generator().manual_seed(seed)
        axis = torch.arange(side)
        corners = torch.cartesian_prod(axis, axis, axis).view(-1, 3)
        rotation = torch.linalg.qr(torch.randn(len(corners), 3, 3, generator=generator, dtype=torch.double))[0]
        rotation[..., 0] *= torch.linalg.det(rotation)[:, None]
        jitter = 0.2 * torch.rand(corners.shape, generator=generator)
        truth = Poses(rotation.float(), corners + jitter)
        first, second = ((corners[:, None] - corners).abs().sum(-1) == 1).nonzero().unbind(1)
        relative = truth[second].inverse() @ truth[first]
        evidence = least + (1 - least) * torch.rand(len(first), CHANNELS, generator=generator)
        return truth, Matches(first, second, relative, torch.zeros_like(first), evidence)

    return make


@dataclass(frozen=True)
class Photo:
    """A photograph (3, H, W) with the place and angle of each piece (degrees, clockwise)."""

    picture: Tensor
    centres: Tensor
    angles: Tensor
    puzzle: Puzzle


def _lay(
    puzzle: Puzzle, sides: list[int], seed: int
) -> tuple[Image.Image, Image.Image, list[tuple[float, float, float]]]:
    """Pieces at any angle, each in a field of its own: colours, what they cover, and centre and angle of each."""
    generator = torch.Generator().manual_seed(seed)
    step = round(max(sides) * 1.75)
    cols = math.ceil(len(sides) ** 0.5)
    size = cols * step + step // 2, math.ceil(len(sides) / cols) * step + step // 2
    layer, cover, places = Image.new("RGB", size), Image.new("L", size), []
    for place, (pixels, side) in enumerate(zip(puzzle.pixels, sides, strict=True)):
        angle = float(torch.rand((), generator=generator)) * 360
        piece = Image.fromarray((pixels * 255).round().byte().movedim(0, -1).numpy())
        large = piece.resize((4 * side, 4 * side), Image.Resampling.LANCZOS).convert("RGBA")
        turned = large.rotate(-angle, expand=True, resample=Image.Resampling.BICUBIC)
        turned = turned.resize((turned.width // 4, turned.height // 4), Image.Resampling.LANCZOS)
        jitter = (torch.rand(2, generator=generator) - 0.5) * side * 0.15
        x, y = (place % cols + 0.75) * step + jitter[0], (place // cols + 0.75) * step + jitter[1]
        corner = round(float(x) - turned.width / 2), round(float(y) - turned.height / 2)
        layer.paste(turned.convert("RGB"), corner, turned.getchannel("A"))
        cover.paste(turned.getchannel("A"), corner, turned.getchannel("A"))
        places.append((corner[0] + turned.width / 2, corner[1] + turned.height / 2, angle))
    return layer, cover, places


def _photograph(
    layer: Image.Image, cover: Image.Image, background: tuple[int, int, int], shadow: float, seed: int
) -> Tensor:
    """Pieces on a table that is lit from one side, with the shadows they cast, and noise."""
    width, height = layer.size
    y, x = np.mgrid[0:height, 0:width]
    table = np.array(background) - 30 * (0.7 * x / width + 0.5 * y / height)[..., None]
    moved = Image.new("L", layer.size)
    moved.paste(cover, (4, 6))
    dark = np.asarray(moved.filter(ImageFilter.GaussianBlur(4))) / 255
    covered = np.asarray(cover)[..., None] / 255
    seen = table * (1 - shadow * dark[..., None]) * (1 - covered) + np.asarray(layer) * covered
    seen = seen + np.random.default_rng(seed).normal(0, 3, seen.shape)
    return torch.from_numpy(seen.clip(0, 255).round() / 255).movedim(-1, 0).float()


@pytest.fixture(scope="session")
def photograph() -> Callable[..., Photo]:
    """Cut a sample picture, scatter its pieces and take a photo; `sides` are the pieces' sizes in it."""

    def make(
        name: str = "coffee",
        sides: list[int] | int = 56,
        background: tuple[int, int, int] = (90, 140, 90),
        shadow: float = 0.35,
        seed: int = 0,
    ) -> Photo:
        puzzle = cut_picture(photo(name), Board(3, 3), torch.Generator().manual_seed(seed), size=64)
        sizes = sides if isinstance(sides, list) else [sides] * len(puzzle)
        layer, cover, places = _lay(puzzle, sizes, seed)
        seen = _photograph(layer, cover, background, shadow, seed)
        where = torch.tensor(places)
        return Photo(seen, where[:, :2], where[:, 2], puzzle)

    return make
