"""Fragments whose size cannot be that of the others: files of another unit of length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from diffassemble.core import Mesh
from diffassemble.core.surfaces import surface_area

# Fragments that are so many times as large or small as all others are told; from the second factor on they are left
# out. A chip of a thousandth of the surface is a thirtieth of the whole in size, but hardly of the next fragment.
TOLD, LEFT_OUT = 25.0, 100.0


@dataclass(frozen=True)
class Misfit:
    """Fragments that are all together `factor` times as large as the others; below 1 they are smaller."""

    members: tuple[int, ...]
    factor: float

    @property
    def leaves_out(self) -> bool:
        """Whether the factor is beyond what chips and bodies of one object explain."""
        return max(self.factor, 1 / self.factor) >= LEFT_OUT

    @property
    def text(self) -> str:
        """How they differ, in words."""
        large = float(f"{max(self.factor, 1 / self.factor):.2g}")
        return f"about {'' if self.factor > 1 else '1/'}{large:.0f} times as large as the others: another unit?"


def misfit(areas: Float64[Tensor, "n"], radii: Float[Tensor, "n"]) -> Misfit | None:
    """The fewer fragments, or of equally many the smaller ones, if sizes fall into two groups far apart.

    Sizes are roots of areas and distances from the middle; both must differ, since a long thin body has little surface.
    """
    sizes = torch.stack([areas.double().sqrt(), radii.double()])
    order = sizes[1].argsort(descending=True, stable=True)
    ordered = sizes[:, order]
    if len(order) < 2 or not bool((sizes > 0).all()):
        return None
    gaps = (ordered.cummin(1).values[:, :-1] / ordered.flip(1).cummax(1).values.flip(1)[:, 1:]).amin(0)
    large = int(gaps.argmax()) + 1
    if gaps[large - 1] < TOLD:
        return None
    factor = float((ordered[:, :large].median(1).values / ordered[:, large:].median(1).values).log().mean().exp())
    if large < len(order) - large:
        return Misfit(tuple(sorted(order[:large].tolist())), factor)
    return Misfit(tuple(sorted(order[large:].tolist())), 1 / factor)


def misfit_of(points: Float[Tensor, "n p 3"], meshes: Sequence[Mesh]) -> Misfit | None:
    """The same for fragments, given as points around their means and as meshes, all in one unit, whichever it is."""
    spread = points.double().var(1).sum(-1).tolist()
    areas = [surface_area(mesh.vertices, mesh.faces) or guess for mesh, guess in zip(meshes, spread, strict=True)]
    return misfit(torch.tensor(areas, dtype=torch.double), points.norm(dim=-1).amax(1))
