"""Placements: what is known of every piece of a puzzle once it is solved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diffassemble.core.poses import Poses
from diffassemble.core.thresholds import LIKELY, SURE

UNPLACED, BY_PERSON = "unplaced", "placed by a person"
STATUSES = ("sure", "likely", "guessed", UNPLACED, BY_PERSON)
"""the status of a piece: confidence ≥ 0.9, ≥ 0.5, above 0, 0, and none"""


class Placement(NamedTuple):
    """One piece: its pose, its object and cell if it has any, its confidence, and the reason for that."""

    pose: Poses
    confidence: float | None
    object: int | None
    cell: tuple[int, int] | None
    status: str
    reason: str


@dataclass(frozen=True)
class Placements:
    """The result of solving, as arrays over the n pieces.

    Arguments:
        poses: where the pieces are.
        confidence: probability that each pose is right, 0…1; 0 for unplaced pieces, NaN for those a person placed.
        objects: number of each piece's object, −1 for unplaced ones; none where the solver places all in one whole.
        cells: row and column in the lattice of the object, if pieces without a board form one; −1 for those in none.
        notes: the reason for a low confidence or for being unplaced, a line each; empty where there is none.
        guess: the best guess for all poses, where `poses` lay unplaced pieces aside.
        order: rank at which each piece was placed, the first ones lowest.
        upright: probability that the whole is the right way up, where it was estimated.

    Example:
        >>> placements[placements.confidence >= 0.9].poses   # of the sure pieces
    """

    poses: Poses
    confidence: Float[Tensor, "n"]
    objects: Int[Tensor, "n"] | None = None
    cells: Int[Tensor, "n 2"] | None = None
    notes: tuple[str, ...] | None = None
    guess: Poses | None = None
    order: Int[Tensor, "n"] | None = None
    upright: float | None = None

    def __len__(self) -> int:
        return len(self.poses)

    def __repr__(self) -> str:
        """A line; the numbers are in the fields."""
        found = self.status
        return f"Placements({', '.join(f'{found.count(name)} {name}' for name in dict.fromkeys(found)) or 'none'})"

    def __getitem__(self, index: Tensor) -> Placements:
        """Some of the pieces, or all in another order."""
        chosen = {one.name: getattr(self, one.name) for one in fields(self)}
        for name, value in chosen.items():
            if isinstance(value, Tensor | Poses):
                chosen[name] = value[index]
        if self.notes is not None:
            chosen["notes"] = tuple(self.notes[piece] for piece in torch.arange(len(self))[index].tolist())
        return Placements(**chosen)

    def among(self, poses: Poses, index: Int[Tensor, "n"]) -> Placements:
        """These as the pieces `index` of a larger puzzle, whose other pieces are unplaced at `poses`."""
        count = len(poses)

        def spread(own: Tensor, empty: int | float) -> Tensor:
            whole = torch.full((count, *own.shape[1:]), empty, dtype=own.dtype)
            whole[index] = own
            return whole

        def moved(own: Poses) -> Poses:
            rotation, translation = poses.rotation.clone(), poses.translation.clone()
            rotation[index], translation[index] = own.rotation, own.translation
            return Poses(rotation, translation)

        notes = dict(zip(index.tolist(), self.notes or ("",) * len(self), strict=True))
        return Placements(
            moved(self.poses),
            spread(self.confidence, 0.0),
            spread(self.numbers, -1),
            None if self.cells is None else spread(self.cells, -1),
            tuple(notes.get(piece, "") for piece in range(count)),
            None if self.guess is None else moved(self.guess),
            None if self.order is None else spread(self.order, count),
            self.upright,
        )

    def with_notes(self, notes: Mapping[int, str]) -> Placements:
        """The same with other notes on some pieces."""
        if not notes:
            return self
        own = {**dict(enumerate(self.notes or ("",) * len(self))), **notes}
        return replace(self, notes=tuple(own[piece] for piece in range(len(self))))

    @property
    def by_person(self) -> Bool[Tensor, "n"]:
        """Which pieces a person placed."""
        return self.confidence.isnan()

    @property
    def trust(self) -> Float[Tensor, "n"]:
        """The confidence, 1 for pieces that a person placed: what to sort and draw by."""
        return self.confidence.nan_to_num(1.0)

    @property
    def numbers(self) -> Int[Tensor, "n"]:
        """The number of each piece's object; 0 for all where the solver knows one whole only."""
        return torch.zeros(len(self), dtype=torch.long) if self.objects is None else self.objects

    @property
    def status(self) -> tuple[str, ...]:
        """The status of each piece, one of `STATUSES`; solvers without objects place all."""
        least = 1e-9 if self.objects is None else 0.0
        pairs = zip(self.confidence.tolist(), self.numbers.tolist(), strict=True)
        return tuple(status_of(confidence or least, number) for confidence, number in pairs)

    @property
    def placed(self) -> tuple[bool, ...]:
        """Which pieces have a place."""
        return tuple(status != UNPLACED for status in self.status)

    def placement(self, piece: int) -> Placement:
        """All that is known of one piece."""
        number, confidence = int(self.numbers[piece]), float(self.confidence[piece])
        row, col = (-1, -1) if self.cells is None else self.cells[piece].tolist()
        return Placement(
            self.poses[[piece]],
            None if math.isnan(confidence) else confidence,
            None if number < 0 else number,
            None if row < 0 else (row, col),
            status_of(confidence or (1e-9 if self.objects is None else 0.0), number),
            "" if self.notes is None else self.notes[piece],
        )


def status_of(confidence: float, number: int) -> str:
    """The status of a piece by its confidence (NaN: placed by a person) and object; without one at best guessed."""
    if math.isnan(confidence):
        return BY_PERSON
    if confidence <= 0:
        return UNPLACED
    if number < 0 or confidence < LIKELY:
        return "guessed"
    return "sure" if confidence >= SURE else "likely"
