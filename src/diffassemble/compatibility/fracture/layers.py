"""One fragment, sampled from coarse to fine, and what its surface looks like around each point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float32, Int64

from diffassemble.compatibility.fracture.features import NAMES, neighbourhood
from diffassemble.compatibility.fracture.sampling import Sample, sample, sample_near
from diffassemble.puzzle import Mesh

LEVELS = 3
# Around the break, a finer level reaches this far, in spacings of the coarser one.
_MARGIN = 1.6
# Fragments with fewer points than this at level 0 are sampled whole at finer levels.
_SMALL = 700


def surface_features(level: int) -> int:
    """How many numbers describe the surroundings of a point at a level."""
    return len(NAMES) * (4 + level)


@dataclass(frozen=True)
class Layers:
    """`levels[L]` has spacing s / 2^L; all of the surface at level 0, what lies near the break at finer ones.

    `coarse` are level 0 thinned to spacings 2 s and 4 s.
    """

    spacing: float
    levels: tuple[Sample, ...]
    coarse: tuple[Sample, Sample]

    @staticmethod
    def of(mesh: Mesh, spacing: float, generator: torch.Generator) -> Layers:
        """The whole surface at level 0."""
        whole = sample(mesh, spacing, generator)
        return Layers(spacing, (whole,), (whole.thinned(2 * spacing), whole.thinned(4 * spacing)))

    def refined(self, mesh: Mesh, near: Float32[np.ndarray, "k 3"], generator: torch.Generator) -> Layers:
        """With one more, finer level around given points of the break; all of a small fragment."""
        fine = self.spacing / 2 ** len(self.levels)
        if len(self.levels[0]) < _SMALL:
            finer = sample(mesh, fine, generator)
        else:
            finer = sample_near(mesh, fine, near, 2 * _MARGIN * fine, generator)
        return Layers(self.spacing, (*self.levels, finer), self.coarse)

    def features(self, level: int, chosen: Int64[np.ndarray, "k"] | slice = slice(None)) -> Float32[np.ndarray, "k f"]:
        """Surroundings of all or some points, at radii from 2.5 spacings of the level, doubling, to 20 of level 0."""
        here = self.levels[level]
        points, normals = here.points[chosen], here.normals[chosen]
        supports = [here, here, *reversed(self.levels[:level]), *self.coarse]
        radius = 2.5 * self.spacing / 2**level
        columns = []
        for support in supports:
            columns.append(neighbourhood(points, normals, support, radius))
            radius *= 2
        return np.concatenate(columns, 1)
