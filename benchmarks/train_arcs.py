"""Fit the networks that judge contacts of free outlines (weights/arcs) on puzzles that are cut and worn here.

    python benchmarks/train_arcs.py PICTURES … --out FOLDER [--puzzles 100] [--seed 0]

Pictures are training pictures. Two thirds of the puzzles are worn unevenly, as frescoes are; the others are shards and
torn paper. Seeds are judged first; what is refined with that judge teaches the next one, and so on. The judge of rivals
sees puzzles that the judge of contacts has not seen. Prints how often contacts of the last third were true.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from scipy import ndimage
from scipy.spatial import cKDTree

from diffassemble.core import Poses, Puzzle
from diffassemble.core.contours import outline_pieces
from diffassemble.io.pictures import read_picture
from diffassemble.outlines import arcs
from diffassemble.outlines.arc_model import ArcConfig, ArcModel, Judge, evened
from diffassemble.outlines.cut import cut_shapes
from diffassemble.outlines.joining import SHORTEST, Groups, Ways
from diffassemble.outlines.pose_graph import complex_of
from diffassemble.outlines.rims import Rims, rims_of
from diffassemble.outlines.seeds import seed_poses, stretches

# A pose counts as true within so many working pixels and radians.
TRUE_PLACE, TRUE_TURN = 14.0, 0.105


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


class Lesson(NamedTuple):
    """A puzzle to learn from: its rims, and where pieces truly stand in working pixels."""

    rims: Rims
    turn: np.ndarray
    place: np.ndarray

    def true(self, first: np.ndarray, second: np.ndarray, poses: np.ndarray) -> np.ndarray:
        """Which poses of the first in the frame of the second are true."""
        back = np.conj(self.turn[second])
        apart = np.abs(poses[:, 2] + 1j * poses[:, 3] - back * (self.place[first] - self.place[second]))
        turned = np.angle((poses[:, 0] + 1j * poses[:, 1]) * np.conj(back * self.turn[first]))
        return (apart < TRUE_PLACE) & (np.abs(turned) < TRUE_TURN)


def lesson(path: Path, number: int, random: np.random.Generator) -> Lesson:
    """The puzzle of this number; every sixth shows silhouettes only."""
    if number % 3:
        puzzle = worn_puzzle(path, random)
    else:
        generator = torch.Generator().manual_seed(int(random.integers(2**31)))
        shape, size, lost = ("shards", "torn")[number % 2], int(random.integers(70, 150)), int(random.integers(0, 5))
        count, missing = int(random.integers(8, 34)), float(random.choice([0, 0, 0.1, 0.25]))
        puzzle = cut_shapes(read_picture(path), shape, count, generator, size=size, missing=missing, erode=lost)
    rims = rims_of(replace(puzzle.outlines, coloured=number % 6 != 5))
    assert puzzle.truth is not None
    turn, place = complex_of(puzzle.truth)
    return Lesson(rims, turn, place * rims.scale)


def fit(judge: Judge, numbers: np.ndarray, true: np.ndarray, steps: int, balanced: bool = False) -> None:
    """Cross-entropy on batches drawn at random; balanced: true and false ones weigh the same."""
    given, wanted = torch.from_numpy(numbers), torch.from_numpy(true).float()
    judge.mean.copy_(given.mean(0))
    judge.deviation.copy_(given.std(0) + 1e-3)
    share = wanted.mean()
    weight = torch.where(wanted > 0, 0.5 / share, 0.5 / (1 - share)) if balanced else torch.ones_like(wanted)
    optimizer = torch.optim.AdamW(judge.parameters(), 3e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, steps)
    for _ in range(steps):
        batch = torch.randint(0, len(given), (2048,))
        loss = F.binary_cross_entropy_with_logits(judge(given[batch]), wanted[batch], weight[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def seed_examples(one: Lesson, model: ArcModel, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of seeds: all of pairs of which some are true, a few of the others."""
    numbers, true = [], []
    for length, smooth, step, blur, colour in arcs.LOOKS:
        found = stretches(one.rims, length, smooth, step)
        for first in range(len(one.turn) - 1):
            told = seed_poses(found, first, blur, colour * one.rims.like, 0.0, arcs.PAIR_SEEDS, arcs.PIECE_SEEDS)
            for second, poses in enumerate(told, first + 1):
                right = one.true(np.array([first]), np.array([second]), poses)
                chosen = np.arange(len(poses)) if right.any() else random.permutation(len(poses))[:5]
                pair = np.full(len(chosen), first), np.full(len(chosen), second)
                numbers.append(arcs.judged(one.rims, model, "seeds", *pair, poses[chosen]).features)
                true.append(right[chosen])
    return np.concatenate(numbers), np.concatenate(true)


def following_examples(one: Lesson, model: ArcModel, found: arcs.Candidates) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of contacts with third pieces, which stand where they belong, that follow from candidates."""
    nothing = Ways(*(np.zeros(0, kind) for kind in (np.int64, np.int64, np.complex128, np.complex128, np.float64)))
    count = len(one.turn)
    groups = Groups(one.rims, model, nothing, np.zeros(count, bool), Poses.identity(count, 2))
    numbers, true = [], []
    right = one.true(found.first, found.second, found.poses)
    for first, second, pose, said in zip(found.first, found.second, found.poses, right, strict=True):
        turn = one.turn[second] * complex(pose[0], pose[1])
        place = one.turn[second] * complex(pose[2], pose[3]) + one.place[second]
        for third in range(count):
            if third in (first, second) or abs(place - one.place[third]) > groups.radius[[first, third]].sum() + 10:
                continue
            back = np.conj(one.turn[third])
            contact = groups.contact(int(first), third, back * turn, back * (place - one.place[third]))
            if contact is not None and contact[2][0, 0] >= SHORTEST:
                numbers.append(contact[2][0])
                true.append(said)
    return np.array(numbers, np.float32).reshape(-1, found.features.shape[1]), np.array(true, bool)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--puzzles", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    random = np.random.default_rng(options.seed)
    paths = [path for folder in options.pictures for path in sorted(folder.iterdir())]
    lessons = [lesson(paths[random.integers(len(paths))], number, random) for number in range(options.puzzles)]
    model = ArcModel(ArcConfig())

    def taught(judge: Judge, examples: list[tuple[np.ndarray, np.ndarray]], steps: int, **how: bool) -> None:
        numbers, true = (np.concatenate(part) for part in zip(*examples, strict=True))
        fit(judge, numbers if judge is model.rivals else evened(torch.from_numpy(numbers)).numpy(), true, steps, **how)

    taught(model.seeds, [seed_examples(one, model, random) for one in lessons[: max(1, len(lessons) // 3)]], 1500)
    found = [arcs.find_refined(one.rims, model) for one in lessons]
    truths = [one.true(own.first, own.second, own.poses) for one, own in zip(lessons, found, strict=True)]
    half = max(1, int(0.6 * len(lessons)))
    taught(
        model.contacts, [(own.features, right) for own, right in zip(found[:half], truths[:half], strict=True)], 2000
    )
    kept = [arcs.best_of_each(own._replace(logit=model.judge("contacts", own.features)), arcs.KEPT) for own in found]
    rivals = [
        (arcs.rivalry(own, len(one.turn)), one.true(own.first, own.second, own.poses))
        for one, own in zip(lessons[half:], kept[half:], strict=True)
    ]
    taught(model.rivals, rivals, 1000)
    follow = [following_examples(one, model, own) for one, own in zip(lessons, kept, strict=True)]
    taught(model.following, follow, 1500, balanced=True)
    model.eval().save_pretrained(options.out)
    likely = np.concatenate([model.judge("rivals", numbers) for numbers, _ in rivals]) > np.log(9)
    print(f"told above 0.9: {likely.sum()}, true: {np.concatenate([true for _, true in rivals])[likely].mean():.3f}")


if __name__ == "__main__":
    main()
