"""What all data of training share: batches that processes share out, mixtures, what is held apart, a cache on disk.

Every puzzle is a pure function of (seed, step, number). So a resumed run continues with the same puzzles as an
uninterrupted one, and several processes can share out one batch.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core import InputError, Locks, Matches, Puzzle
from diffassemble.core.pieces import surviving
from diffassemble.core.settings import Natural, Settings
from diffassemble.evaluation.outlines import find_recorded, read_recorded
from diffassemble.fragments.datasets import UNREADABLE
from diffassemble.io.atomic import write_file

Item = TypeVar("Item")


@dataclass(frozen=True)
class Portion:
    """One process's part of a batch.

    `first` is the number of its first puzzle in the whole batch. The mean over processes of `weight` times the mean
    over the own pieces is the mean over the whole batch. All pieces lost `erode` pixels at every side. `pictures` are
    given for puzzles cut from whole pictures that come again and again, `matches` where they are known.
    """

    puzzles: list[Puzzle]
    first: int
    weight: float
    erode: int = 0
    pictures: tuple[Float[Tensor, "3 _ _"] | None, ...] = ()
    matches: tuple[Matches, ...] = ()


def uniform(low: float, high: float, generator: torch.Generator) -> float:
    """One random number in [low, high)."""
    return low + (high - low) * float(torch.rand((), generator=generator))


def share_out(sizes: int | Sequence[int], rank: int, world: int) -> tuple[range, float]:
    """The numbers of the items of a batch that fall to process `rank` of `world`, and their weight in the mean.

    Items are given by their number, if they are equally large, or else by their sizes. A process for which none is
    left gets the first one at no weight, since all must take part in a step.
    """
    sizes = [1] * sizes if isinstance(sizes, int) else sizes
    first, end = (-(-len(sizes) * place // world) for place in (rank, rank + 1))
    if first == end:
        return range(1), 0.0
    return range(first, end), sum(sizes[first:end]) * world / sum(sizes)


Scored = tuple[Puzzle, Matches | None]
"""a puzzle, and its matches where the network reads them"""


def missing_share(data: Any, generator: torch.Generator) -> float:
    """A share of missing pieces: none in `whole_share` of the cases, else up to `missing`."""
    whole = uniform(0.0, 1.0, generator) < data.whole_share
    return 0.0 if whole else uniform(0.0, data.missing, generator)


def survivors(count: int, missing: float, generator: torch.Generator) -> Int[Tensor, "m"]:
    """Which of `count` pieces are left when a share is lost, though two stay."""
    return surviving(count, min(missing, max(0.0, 1 - 2 / count)), generator)


@dataclass(frozen=True)
class Mixture(Generic[Item]):
    """Groups of examples; `shares` are in proportion to how often each group is drawn from."""

    groups: Sequence[Sequence[Item]]
    shares: Sequence[float]

    def choose(self, generator: torch.Generator) -> tuple[int, int]:
        """The numbers of a random group and of an example in it."""
        group = int(torch.multinomial(torch.tensor(self.shares), 1, generator=generator))
        return group, int(torch.randint(len(self.groups[group]), (), generator=generator))

    def draw(self, generator: torch.Generator) -> Item:
        """A random example."""
        group, number = self.choose(generator)
        return self.groups[group][number]


def split_apart(items: Sequence[Item], most: int) -> tuple[list[Item], list[Item]]:
    """Items to learn from, and those held apart to choose the checkpoint: evenly spread, at most a quarter of all."""
    count = min(most, len(items) // 4)
    apart = {len(items) * (2 * i + 1) // (2 * count) for i in range(count)} if count else set()
    return [one for i, one in enumerate(items) if i not in apart], [items[i] for i in sorted(apart)]


def cached(path: Path | None, make: Callable[[], dict[str, Tensor]], required: bool = True) -> dict[str, Tensor]:
    """Arrays from a file, if it is there and whole; else they are made and written to it.

    Where it cannot be written, an InputError is raised if the file is `required`. Without a path they are made.
    """
    if path is None:
        return make()
    with suppress(*UNREADABLE), np.load(path, allow_pickle=False) as arrays:
        return {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    made, content = make(), io.BytesIO()
    np.savez(content, **{name: value.numpy() for name, value in made.items()})  # type: ignore[arg-type]
    try:
        write_file(path, content.getbuffer())
    except InputError:
        if required:
            raise
    return made


def remaining(matches: Matches, kept: Int[Tensor, "m"], count: int) -> Matches:
    """The matches between those of `count` pieces that are kept, by their new numbers."""
    number = torch.full((count,), -1)
    number[kept] = torch.arange(len(kept))
    left = matches[((number[matches.first] >= 0) & (number[matches.second] >= 0)).nonzero()[:, 0]]
    return replace(left, first=number[left.first], second=number[left.second])


def relative_to(puzzle: Puzzle, piece: Tensor) -> Puzzle:
    """The puzzle with its truth in the frame of a piece, which is locked."""
    assert puzzle.truth is not None
    own = puzzle.truth[piece.expand(len(puzzle))].inverse() @ puzzle.truth
    return replace(puzzle, truth=own, locks=Locks(torch.arange(len(puzzle)) == piece, own))


@dataclass(frozen=True)
class RecordedConfig(Settings):
    """Which puzzles of flat pieces, whose places are known."""

    folders: tuple[Path, ...] = ()
    """folders of puzzle folders, or of pictures of pieces with a truth.csv, as `evaluate` takes them"""
    held_apart: Natural = 10
    """puzzles that choose the checkpoint and are never trained on; at most a quarter of all"""

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if not self.folders:
            yield "folders", "folders of puzzles with known places; pass --data.folders DIR [DIR ...]"


def recorded_puzzles(data: RecordedConfig) -> tuple[list[Puzzle], list[Puzzle]]:
    """Puzzles of flat pieces with known places to learn from, and those held apart."""
    found = [path for folder in data.folders for path in find_recorded(folder)]
    if not found:
        raise InputError(f"--data.folders {data.folders[0]}: holds no puzzles of flat pieces whose places are known")
    return split_apart([read_recorded(path)[0] for path in found], data.held_apart)
