"""Mends broken objects: fracture faces are found, matched and verified, and fragments joined, the surest fit first."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from diffassemble.compatibility.fracture.clusters import Cluster, Pose, composed
from diffassemble.compatibility.fracture.judges import Judges
from diffassemble.compatibility.mesh import prepare
from diffassemble.geometry import Poses
from diffassemble.puzzle import FragmentPieces, Locks, Puzzle, Step
from diffassemble.solvers.beam import assemble_best
from diffassemble.solvers.diffusion import content_order
from diffassemble.solvers.merging import Bench, standing
from diffassemble.solvers.rounds import LIKELY

# The least probability with which pieces are joined: mere guesses, where all belong to one object; likely fits, where
# there may be several.
_GUESS = 0.1


@dataclass(frozen=True)
class MendSolver:
    """Joins fragments along their breaks; what fits nowhere is laid beside, with confidence 0.

    The largest fragment stays turned as it was given: geometry can't know how the object stood. After `budget` seconds
    nothing more is searched for, and what is known by then is used. With `several` the fragments may be of more than
    one object: only likely fits count, and every group that holds together is an object of its own. Where fits
    contradict each other, up to `beam` assemblies are made, and the one with most evidence is the answer.
    """

    judges: Judges
    budget: float = math.inf
    several: bool = False
    beam: int = 3
    name: str = "mend"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the fragments lying apart, then after every join, and the whole with confidences at last.

        The answer does not depend on the order in which the fragments are listed.
        """
        until = time.monotonic() + self.budget
        pieces = puzzle.fragments
        order = content_order(pieces.content)
        back = order.argsort()
        seed = int(torch.randint(1 << 30, (1,), generator=generator))
        locked = {} if puzzle.locks is None else _locked(puzzle.locks[order])
        for step in self._ordered_steps(pieces[order], locked, seed, until):
            sure = None if step.confidence is None else step.confidence[back]
            yield Step(step.poses[back], step.done, sure, None if step.objects is None else step.objects[back])

    def _ordered_steps(
        self, pieces: FragmentPieces, locked: dict[int, Pose], seed: int, until: float
    ) -> Iterator[Step]:
        bench = Bench(prepare(pieces, self.judges, seed), self.judges, seed, until, locked)
        yield Step(lay_out(bench.clusters, bench.anchor, pieces), done=0.0)
        for joins, _ in enumerate(assemble_best(bench, LIKELY if self.several else _GUESS, self.beam), 1):
            yield Step(lay_out(bench.clusters, bench.anchor, pieces), done=0.99 * joins / len(pieces))
        objects = found_objects(bench, self.several)
        sure = torch.tensor(bench.confidence).where(objects >= 0, 0.0)
        yield Step(lay_out(bench.clusters, bench.anchor, pieces), 1.0, sure, objects)


def found_objects(bench: Bench, several: bool) -> Int[Tensor, "n"]:
    """Which object each fragment belongs to, 0 that of the anchor, then the largest; −1 for what was left out.

    Where there is one object, what does not hold to the anchor is left out; where there are several, single pieces.
    """
    objects = torch.full((len(bench.fragments),), -1)
    number = 0
    for cluster in sorted(bench.clusters, key=lambda cluster: (bench.anchor not in cluster.members, -cluster.area)):
        if bench.anchor in cluster.members or (several and len(cluster.members) > 1):
            objects[list(cluster.members)] = number
            number += 1
    return objects


def _locked(locks: Locks) -> dict[int, Pose]:
    """The poses of the locked pieces."""
    numbers = torch.cat([locks.poses.rotation.flatten(1), locks.poses.translation], 1).double().numpy()
    return {piece: numbers[piece] for piece in locks.held.nonzero().flatten().tolist()}


def lay_out(clusters: Sequence[Cluster], anchor: int, pieces: FragmentPieces) -> Poses:
    """The cluster of the anchor in the middle, the others beside it in a row, the largest first."""
    poses = np.zeros((len(pieces), 12))
    ranked = sorted(clusters, key=lambda cluster: (anchor not in cluster.members, -cluster.area, cluster.members))
    edge = 0.0
    for number, cluster in enumerate(ranked):
        own = {piece: composed(standing(cluster, _largest(cluster, anchor)), cluster.poses[piece])
               for piece in cluster.members}  # fmt: skip
        low, high = _bounds(own, pieces)
        shift = -(low + high) / 2
        if number:
            shift[0] = edge + 0.1 - low[0]
            edge += 0.1 + float(high[0] - low[0])
        else:
            edge = float(high[0] - low[0]) / 2
        for piece, pose in own.items():
            poses[piece] = pose
            poses[piece, 9:] += shift
    moved = torch.from_numpy(poses.astype(np.float32))
    return Poses(moved[:, :9].reshape(-1, 3, 3), moved[:, 9:])


def _largest(cluster: Cluster, anchor: int) -> int:
    """The piece in whose frame a cluster is shown."""
    if anchor in cluster.members:
        return anchor
    return max(cluster.members, key=lambda piece: (cluster.fragments[piece].area, -piece))


def _bounds(poses: dict[int, Pose], pieces: FragmentPieces) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest corner of some pieces at their poses."""
    corners = np.concatenate(
        [pieces.points[piece].numpy() @ pose[:9].reshape(3, 3).T + pose[9:] for piece, pose in poses.items()]
    )
    return corners.min(0), corners.max(0)
