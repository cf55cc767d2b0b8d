"""A fragment made ready for matching: its body, and its break at each level, each made when first asked for."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool

from diffassemble.compatibility.fracture.breaks import smooth_breaks
from diffassemble.compatibility.fracture.faces import MATE_SIGNS, relief
from diffassemble.compatibility.fracture.judges import Judges
from diffassemble.compatibility.fracture.layers import LEVELS, Layers
from diffassemble.compatibility.fracture.sampling import Sample, sample, sample_near
from diffassemble.compatibility.fracture.sides import Break
from diffassemble.puzzle import Mesh

_BROKEN = 0.4
# Fragments with fewer points than this at level 0 are looked at as a whole.
_SMALL = 700
_BALANCED = 0.75
# Finer levels look where the coarser one has at least these suspicions.
_SUSPECTED = np.array([0.25, 0.65], np.float32)


class Fragment:
    """One piece; `breaks(level)` looks closer where level 0 sees a break. All that is drawn comes from one seed."""

    def __init__(self, mesh: Mesh, spacing: float, judges: Judges, seed: int) -> None:
        self.mesh, self.spacing, self.judges = mesh, spacing, judges
        self.generator = torch.Generator().manual_seed(seed)
        self.layers = Layers.of(mesh, spacing, self.generator)
        self.found: list[Bool[np.ndarray, "p"]] = []
        self.suspects: list[Bool[np.ndarray, "p"]] = []
        self.made: dict[int, Break] = {}
        self.sampled: dict[float, Sample] = {}

    @property
    def area(self) -> float:
        """Of the whole surface."""
        return len(self.layers.levels[0]) * self.layers.levels[0].area

    def broken(self, level: int) -> Bool[np.ndarray, "p"]:
        """Which points of a level are of the break."""
        while len(self.found) <= level:
            self._find(len(self.found))
        return self.found[level]

    def breaks(self, level: int) -> Break:
        """The break at a level, with descriptors."""
        if level not in self.made:
            broken = self.broken(level)
            face = relief(self.layers.levels[level], broken, self.spacing / 2**level)
            seen = self.judges.descriptors(level, face.features)
            sought = self.judges.descriptors(level, face.features * MATE_SIGNS)
            self.made[level] = Break(face.points, face.normals, face.smooth, face.rim, face.original, seen, sought)
        return self.made[level]

    def near_break(self, spacing: float) -> Sample:
        """The surface where level 0 suspects a break, at any spacing; all of it if the fragment is small."""
        if spacing not in self.sampled:
            self.broken(0)
            whole = self.layers.levels[0]
            if len(whole) < _SMALL:
                self.sampled[spacing] = sample(self.mesh, spacing, self.generator)
            else:
                near = whole.points[self.suspects[0]]
                self.sampled[spacing] = sample_near(self.mesh, spacing, near, 2 * self.spacing, self.generator)
        return self.sampled[spacing]

    def _find(self, level: int) -> None:
        assert level < LEVELS
        if level:
            near = self.layers.levels[level - 1].points[self.suspects[level - 1]]
            self.layers = self.layers.refined(self.mesh, near, self.generator)
        here = self.layers.levels[level]
        if not len(here):
            self.suspects.append(np.zeros(0, bool))
            self.found.append(np.zeros(0, bool))
            return
        chance = self.judges.breaks(level, self.layers.features(level))
        chance = smooth_breaks(here, self.spacing / 2**level, chance)
        self.found.append((chance[:, 0] > _BROKEN) | (chance[:, 1] > _BALANCED))
        self.suspects.append(np.any(chance > _SUSPECTED, axis=1))
