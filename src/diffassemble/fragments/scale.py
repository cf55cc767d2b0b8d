"""Fragments whose size cannot be that of the others: files of another unit of length.

Another unit changes all lengths alike: how large a fragment is, how thick its wall, and how far apart the corners or
points are that a scanner or modeller put down. A large body beside chips differs in the first alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int64
from scipy.spatial import cKDTree
from torch import Tensor

from diffassemble.core import Mesh
from diffassemble.core.surfaces import sample_surface, surface_area

# Fragments that are so many times as large or small as all others are told; from the second factor on they are left
# out. A chip of a thousandth of the surface is a thirtieth of the whole in size, but hardly of the next fragment.
TOLD, LEFT_OUT = 25.0, 100.0
# They are left out, too, where their corners are so many times as far apart as those of any other, and they are at
# least so much larger and thicker. Of 110 training objects (756 fragments) none was accused; 95 to 97 % were with a
# fragment made ten times as large or small, 98 to 100 % with one made 25.4 times so.
_GRAIN, _LARGER, _THICKER = 3.0, 1.3, 2.0
# Meshes with about as many triangles each were brought to them, so their grain follows their size; then thickness must
# differ so much, of fragments that are thin beside their size.
_AS_MANY, _THIN = 1.3, 0.12
# Millimetres, centimetres, inches, feet and metres differ by these; what is measured tells it within such a factor.
_UNITS, _NEAR = (2.54, 10.0, 25.4, 100.0, 304.8, 1000.0), 1.5
# Thickness: of so many points against so many; the other side lies within this cosine, and within this part of the
# depth, or so many gaps between points, of the way straight in.
_PROBES, _DRAWN, _FACING, _ASIDE, _GAPS = 200, 1500, -0.5, 0.3, 1.2


@dataclass(frozen=True)
class Misfit:
    """Fragments that are all together `factor` times as large as the others; below 1 they are smaller."""

    members: tuple[int, ...]
    factor: float
    sure: bool = False
    """whether the grain of their surfaces says so, too"""

    @property
    def leaves_out(self) -> bool:
        """Whether this is beyond what chips and bodies of one object explain."""
        return self.sure or max(self.factor, 1 / self.factor) >= LEFT_OUT

    @property
    def text(self) -> str:
        """How they differ, in words."""
        large = float(f"{max(self.factor, 1 / self.factor):.2g}")
        return f"about {'' if self.factor > 1 else '1/'}{large:.0f} times as large as the others: another unit?"


@dataclass(frozen=True)
class Lengths:
    """Of every fragment: root of the area, how far its points reach, thickness of its wall (NaN where it is not known),
    distance of neighbouring corners, and how many triangles, or points of a cloud, it has."""

    sizes: Float64[Tensor, "n"]
    radii: Float64[Tensor, "n"]
    thickness: Float64[Tensor, "n"]
    grain: Float64[Tensor, "n"]
    counts: Int64[Tensor, "n"]


def misfit(lengths: Lengths) -> Misfit | None:
    """The fewer fragments, or of equally many the smaller ones, if lengths fall into two groups far apart."""
    if len(lengths.sizes) < 2 or not bool((lengths.sizes > 0).all() & (lengths.radii > 0).all()):
        return None
    return _by_grain(lengths) or _by_size(lengths)


def _by_grain(lengths: Lengths) -> Misfit | None:
    """Those whose corners are farther apart, or whose walls are thicker, than any other's, and which are larger."""
    alike = bool(lengths.counts.max() < _AS_MANY * lengths.counts.min())
    key = lengths.thickness if alike else lengths.grain
    if not bool((key > 0).all()) or (alike and float((key / lengths.sizes).median()) > _THIN):
        return None
    order = key.argsort(descending=True, stable=True)
    gaps = key[order][:-1] / key[order][1:]
    large = int(gaps.argmax()) + 1
    times = [_times(one, order, large) for one in (lengths.sizes, lengths.thickness, lengths.grain)]
    if gaps[large - 1] < _GRAIN or times[0] < _LARGER or times[1] < _THICKER:
        return None
    return _fewer(order, large, _unit_step(times[1] if alike else times[2]), sure=True)


def _unit_step(times: float) -> float:
    """The factor between two units in use that is nearest, or the number itself where none is near."""
    step = min(_UNITS, key=lambda unit: abs(math.log(times / unit)))
    return step if abs(math.log(times / step)) < math.log(_NEAR) else times


def _by_size(lengths: Lengths) -> Misfit | None:
    """Those of other sizes beyond doubt: roots of areas and radii, since a long thin body has little surface."""
    sizes = torch.stack([lengths.sizes, lengths.radii])
    order = lengths.radii.argsort(descending=True, stable=True)
    ordered = sizes[:, order]
    gaps = (ordered.cummin(1).values[:, :-1] / ordered.flip(1).cummax(1).values.flip(1)[:, 1:]).amin(0)
    large = int(gaps.argmax()) + 1
    if gaps[large - 1] < TOLD:
        return None
    factor = (_times(lengths.sizes, order, large) * _times(lengths.radii, order, large)) ** 0.5
    return _fewer(order, large, factor, sure=False)


def _times(lengths: Float64[Tensor, "n"], order: Int64[Tensor, "n"], large: int) -> float:
    """How many times as large the first in an order are as the others."""
    return float(lengths[order[:large]].median() / lengths[order[large:]].median())


def _fewer(order: Int64[Tensor, "n"], large: int, factor: float, sure: bool) -> Misfit:
    if large < len(order) - large:
        return Misfit(tuple(sorted(order[:large].tolist())), factor, sure)
    return Misfit(tuple(sorted(order[large:].tolist())), 1 / factor, sure)


def misfit_of(points: Float[Tensor, "n p 3"], meshes: Sequence[Mesh]) -> Misfit | None:
    """The same for fragments, given as points around their means and as meshes, all in one unit, whichever it is."""
    spread = points.double().var(1).sum(-1).tolist()
    rows = [_measured(mesh, guess) for mesh, guess in zip(meshes, spread, strict=True)]
    areas, thickness, grain, counts = (torch.tensor(column, dtype=torch.double) for column in zip(*rows, strict=True))
    return misfit(Lengths(areas.sqrt(), points.double().norm(dim=-1).amax(1), thickness, grain, counts.long()))


def _measured(mesh: Mesh, spread: float) -> tuple[float, float, float, int]:
    """Area or a guess at it, thickness, grain and count of one fragment."""
    area = surface_area(mesh.vertices, mesh.faces)
    if area > 0:
        return area, wall_thickness(mesh, area), (area / len(mesh.faces)) ** 0.5, len(mesh.faces)
    corners = mesh.vertices.double()
    cloud = (corners - corners.mean(0)).numpy()
    near = cKDTree(cloud).query(cloud[:: max(1, len(cloud) // _PROBES)], min(7, len(cloud)))[0]
    return spread, float("nan"), float(torch.from_numpy(near).reshape(len(near), -1)[:, -1].median()), len(cloud)


def wall_thickness(mesh: Mesh, area: float) -> float:
    """How deep the other side typically lies below the surface; NaN where it has none, as a scan of one side."""
    generator = torch.Generator().manual_seed(0)
    points, normals = sample_surface(mesh.vertices.double(), mesh.faces, _DRAWN, generator)
    way = points[None] - points[:_PROBES, None]
    depth = -(way * normals[:_PROBES, None]).sum(-1)
    aside = (way.square().sum(-1) - depth.square()).clamp(min=0).sqrt()
    opposite = (normals[:_PROBES] @ normals.T < _FACING) & (depth > 0)
    opposite &= aside < torch.clamp(_ASIDE * depth, min=_GAPS * (area / _DRAWN) ** 0.5)
    nearest = depth.where(opposite, torch.inf).amin(1)
    known = nearest[nearest.isfinite()]
    return float(known.median()) if len(known) > _PROBES / 4 else float("nan")
