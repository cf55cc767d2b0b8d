"""Puzzles of free outlines, unevenly worn as frescoes are, which the task `arcs` learns from.

    python benchmarks/worn_puzzles.py PICTURES … --out FOLDER [--puzzles 100] [--seed 0]
    diffassemble train arcs --data.folders FOLDER --out runs/arcs

writes puzzle folders with known places. Two thirds of them are broken along bent lines and worn unevenly; the others
are shards and torn paper, as `diffassemble cut` makes them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from scipy import ndimage
from scipy.spatial import cKDTree

from diffassemble.core import Poses, Puzzle
from diffassemble.core.contours import outline_pieces
from diffassemble.io.pictures import read_picture
from diffassemble.io.puzzles import write_puzzle
from diffassemble.outlines.cut import cut_shapes


def field(shape: tuple[int, int], scale: float, random: np.random.Generator) -> np.ndarray:
    """A random field that changes over this many pixels, of unit deviation."""
    coarse = random.standard_normal((int(shape[0] / scale) + 4, int(shape[1] / scale) + 4))
    fine = ndimage.zoom(coarse, max(scale, 1.0), order=3)[: shape[0], : shape[1]]
    return fine / (fine.std() + 1e-9)


def worn_puzzle(path: Path, random: np.random.Generator) -> Puzzle:
    """A picture, enlarged and grained, broken along bent lines, its joints thin here and wide there."""
    picture = read_picture(path)
    longest = random.uniform(450, 1000) / max(picture.shape[1:])
    enlarged = F.interpolate(picture[None], scale_factor=longest, mode="bicubic")[0].clamp(0, 1)
    levels = 255 * enlarged.permute(1, 2, 0).numpy()
    shape = (levels.shape[0], levels.shape[1])
    grain = random.uniform(0, 8)
    for scale in (1.0, 2.0, 4.0):
        levels = levels + (field(shape, scale, random) * grain * random.uniform(0.3, 1))[..., None]
    levels = levels.clip(0, 255)
    count = int(random.integers(6, 30))
    unit = float(np.sqrt(shape[0] * shape[1] / count))
    # Cells of random middles, seen through a bent glass.
    down, across = np.mgrid[0 : shape[0], 0 : shape[1]]
    places = np.stack([down, across], -1).astype(float)
    strength = random.uniform(0.5, 1.3)
    for scale, amount in ((0.9 * unit, 0.10), (0.4 * unit, 0.06), (0.15 * unit, 0.025), (max(0.05 * unit, 2.0), 0.01)):
        bend = strength * amount * unit * random.uniform(0.3, 1.3)
        places += bend * np.stack([field(shape, scale, random), field(shape, scale, random)], -1)
    label = cKDTree(random.random((count, 2)) * shape).query(places.reshape(-1, 2))[1].reshape(shape)
    seam = np.zeros(shape, bool)
    seam[:, 1:] |= label[:, 1:] != label[:, :-1]
    seam[1:] |= label[1:] != label[:-1]
    slow = field(shape, unit * random.uniform(0.25, 0.6), random) - random.uniform(-0.3, 0.9)
    lost = random.uniform(0.3, 2) + np.maximum(0, slow) * random.uniform(0, 0.07) * unit * (random.random() < 0.8)
    lost = lost + field(shape, 4.0, random) * random.uniform(0, 1)
    keep = ndimage.distance_transform_edt(~seam) > lost
    if random.random() < 0.4:  # the outer border is worn, too
        edge = np.minimum(np.minimum(down, shape[0] - 1 - down), np.minimum(across, shape[1] - 1 - across))
        keep &= edge > (0.6 * field(shape, 0.3 * unit, random) + 1) * random.uniform(0, 0.12) * unit
    return _taken_apart(levels, label, keep, count, unit, random)


def _taken_apart(
    levels: np.ndarray, label: np.ndarray, keep: np.ndarray, count: int, unit: float, random: np.random.Generator
) -> Puzzle:
    """The pieces on white paper, each turned at random; sometimes some are missing."""
    textures, turns, shifts = [], [], []
    swap = np.array([[0, 1], [1, 0]])  # rows and columns are y and x
    for piece in range(count):
        parts, found = ndimage.label((label == piece) & keep)
        if not found:
            continue
        mask = parts == 1 + np.argmax(ndimage.sum(parts > 0, parts, range(1, found + 1)))
        mask = ndimage.binary_fill_holes(mask)
        if mask.sum() < max(300, 0.02 * unit**2):
            continue
        row, column = np.nonzero(mask)
        top, left = row.min() - 6, column.min() - 6
        size = (row.max() - top + 7, column.max() - left + 7)
        padded = np.zeros(size, np.float32)
        padded[row - top, column - left] = 1
        alpha = ndimage.gaussian_filter(padded, 0.6)
        colours = np.full((*size, 3), 255.0)
        colours[row - top, column - left] = levels[row, column]
        near = ndimage.distance_transform_edt(padded == 0, return_distances=False, return_indices=True)
        shown = colours[near[0], near[1]] * alpha[..., None] + 255 * (1 - alpha[..., None])
        angle = random.uniform(0, 2 * np.pi)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        side = int(np.hypot(*size)) + 2
        here, there = np.array(size[::-1]) / 2, np.full(2, side / 2)
        offset = swap @ (turn.T @ (0.5 - there) + here) - 0.5
        channels = [*np.moveaxis(shown, -1, 0), 255 * alpha]
        turned = [
            ndimage.affine_transform(channel, swap @ turn.T @ swap, offset, (side, side), order=1, cval=outside)
            for channel, outside in zip(channels, (255, 255, 255, 0), strict=True)
        ]
        textures.append(torch.from_numpy(np.stack(turned).clip(0, 255).round().astype(np.uint8)))
        turns.append(turn.T)
        shifts.append(here + np.array([left, top]) - turn.T @ there)
    missing = random.uniform(0, 0.25) if random.random() < 0.4 else 0.0
    kept = random.permutation(len(textures))[: max(3, round(len(textures) * (1 - missing)))]
    pieces = outline_pieces([textures[k] for k in kept])
    rotation = torch.tensor(np.stack([turns[k] for k in kept])).float()
    origins = (rotation @ pieces.origins[:, :, None])[..., 0]
    truth = Poses(rotation, torch.tensor(np.stack([shifts[k] for k in kept])).float() + origins)
    return Puzzle(pieces, None, tuple(map(str, kept)), truth)


def puzzle_of(path: Path, number: int, random: np.random.Generator) -> Puzzle:
    """The puzzle of this number: every third one is of shards or torn paper."""
    if number % 3:
        return worn_puzzle(path, random)
    generator = torch.Generator().manual_seed(int(random.integers(2**31)))
    shape, size, lost = ("shards", "torn")[number % 2], int(random.integers(70, 150)), int(random.integers(0, 5))
    count, missing = int(random.integers(8, 34)), float(random.choice([0, 0, 0.1, 0.25]))
    return cut_shapes(read_picture(path), shape, count, generator, size=size, missing=missing, erode=lost)


def main() -> None:
    """Read the options, make the puzzles and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--puzzles", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    paths = [path for folder in options.pictures for path in sorted(folder.iterdir())]
    for number in range(options.puzzles):
        puzzle = puzzle_of(paths[random.integers(len(paths))], number, random)
        write_puzzle(puzzle, options.out / f"{number:04d}")


if __name__ == "__main__":
    main()
