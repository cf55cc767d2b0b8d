"""Puzzles, locks, and the error of bad input."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diffassemble.core.board import Board
from diffassemble.core.pieces import FragmentPieces, ImagePieces, OutlinePieces
from diffassemble.core.poses import Poses

_Pieces = TypeVar("_Pieces", ImagePieces, FragmentPieces, OutlinePieces)


class InputError(ValueError):
    """Bad input: one line of what is wrong, in which file, and what to do. The command line exits with 2."""


@dataclass(frozen=True)
class Locks:
    """The poses of pieces that are `held`, which solvers leave as they are; the other poses mean nothing."""

    held: Bool[Tensor, "n"]
    poses: Poses

    def __getitem__(self, index: Int[Tensor, "m"]) -> Locks:
        return Locks(self.held[index], self.poses[index])

    def applied(self, poses: Poses) -> Poses:
        """The same poses, with the locked ones put in."""
        return Poses(
            torch.where(self.held[:, None, None], self.poses.rotation, poses.rotation),
            torch.where(self.held[:, None], self.poses.translation, poses.translation),
        )


@dataclass(frozen=True)
class Puzzle:
    """Pieces, the lattice that they belong on, if any, the truth, if known, and poses that are locked beforehand.

    A lattice may have more cells than there are pieces. An object's whole is centred, its longest side is 1.
    """

    pieces: ImagePieces | FragmentPieces | OutlinePieces
    lattice: Board | None
    names: tuple[str, ...]
    truth: Poses | None = None
    locks: Locks | None = None
    drawn_by: ClassVar[Callable[[Puzzle], bytes] | None] = None

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        """A line; the numbers are in the fields."""
        board = "" if self.lattice is None else f", grid {self.lattice.rows}x{self.lattice.cols}"
        held = "" if self.locks is None else f", {int(self.locks.held.sum())} locked"
        known = "" if self.truth is None else ", truth known"
        return f"Puzzle({len(self)} {self.pieces.called}{board}{held}{known})"

    def _repr_png_(self) -> bytes | None:
        """The pieces as they were given, for notebooks, if what draws them is loaded."""
        return None if Puzzle.drawn_by is None else Puzzle.drawn_by(self)

    @property
    def kind(self) -> str:
        """The name of the kind of pieces."""
        return self.pieces.kind

    @property
    def board(self) -> Board:
        """The lattice with the shape of the pieces; refused where there is none."""
        if self.lattice is None:
            raise InputError(f"these are {self.pieces.called}, which have no board; choose a solver for them")
        height, width = self.pictures.height, self.pictures.width
        return self.lattice if height == width else replace(self.lattice, aspect=height / width)

    @property
    def pictures(self) -> ImagePieces:
        """The pieces, if they are those of a picture."""
        return self._pieces_of(ImagePieces)

    @property
    def pixels(self) -> Float[Tensor, "n 3 h w"]:
        """Colours of the pieces of a picture."""
        return self.pictures.pixels

    @property
    def fragments(self) -> FragmentPieces:
        """The pieces, if they are fragments."""
        return self._pieces_of(FragmentPieces)

    @property
    def outlines(self) -> OutlinePieces:
        """The pieces, if they are of any outline."""
        return self._pieces_of(OutlinePieces)

    def _pieces_of(self, wanted: type[_Pieces]) -> _Pieces:
        if self.kind != wanted.kind:
            raise InputError(f"these are {self.pieces.called}, not {wanted.called}; choose a solver for them")
        return cast(_Pieces, self.pieces)

    def check_turn(self, degrees: int) -> None:
        """Refuse to turn a whole that can't be turned so: flat ones are turned by quarters, oblong pieces by halves."""
        if not self.pieces.flat:
            raise InputError(f"only flat pieces are turned as a whole; these are {self.pieces.called}")
        if degrees % 90:
            raise InputError(f"a whole is turned by quarters, such as 90, 180 or 270 degrees, not by {degrees}")
        if degrees % 180 and self.lattice is not None and self.board.oblong:
            raise InputError("oblong pieces fit their cells at half turns only; turn the whole by 180 degrees")

    def reordered(self, order: Int[Tensor, "n"]) -> Puzzle:
        """The same puzzle with its pieces listed in another order."""
        return replace(
            self,
            pieces=self.pieces[order],
            names=tuple(self.names[i] for i in order.tolist()),
            truth=None if self.truth is None else self.truth[order],
            locks=None if self.locks is None else self.locks[order],
        )

    def without_truth(self) -> Puzzle:
        """What a solver may see."""
        return replace(self, truth=None)


def labels(names: Sequence[str]) -> list[str]:
    """Short names of pieces: the number in each file's name, if those differ, or else its place in the list."""
    found = [re.findall(r"\d+", name.rsplit(".", 1)[0]) for name in names]
    numbers = [str(int(digits[-1])) if digits else "" for digits in found]
    return numbers if "" not in numbers and len(set(numbers)) == len(numbers) else [str(i) for i in range(len(names))]
