"""Where one looks from. Space has y up; what the camera sees has x to the right, y down and z away from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64

# The eye stands this many radii away: near enough for some perspective, far enough not to distort.
_EYE = 4.5


@dataclass(frozen=True)
class Camera:
    """Turns space by `rotation` about `target`, looks at it from `distance`, and spreads it over a picture.

    A point at (x, y, z) before the eye falls on the pixel `middle` + `focal` · (x, y) / z.
    """

    rotation: Float64[np.ndarray, "3 3"]
    target: Float64[np.ndarray, "3"]
    distance: float
    focal: float
    middle: tuple[float, float]

    def view(self, points: Float32[np.ndarray, "*s 3"]) -> Float32[np.ndarray, "*s 3"]:
        """Points of space as they lie before the eye."""
        offset = np.array([0, 0, self.distance]) - self.rotation @ self.target
        turned = points.reshape(-1, 3) @ self.rotation.T.astype(np.float32)
        return (turned + offset.astype(np.float32)).reshape(points.shape)

    def project(self, seen: Float32[np.ndarray, "*s 3"]) -> Float32[np.ndarray, "*s 3"]:
        """Points before the eye as (x, y, 1/z), x and y in pixels; 1/z is linear on a plane as it appears."""
        result = np.empty_like(seen)
        result[..., 2] = 1 / seen[..., 2]
        for axis in range(2):
            result[..., axis] = seen[..., axis] * (np.float32(self.focal) * result[..., 2]) + np.float32(
                self.middle[axis]
            )
        return result

    def towards(self, other: Camera, share: float) -> Camera:
        """A camera with this one's turn on the way to another: 0 stands here, 1 shows as much as the other does."""
        distance = self.distance + (other.distance - self.distance) * share
        breadths = self.distance / self.focal, other.distance / other.focal
        x, y = ((1 - share) * here + share * there for here, there in zip(self.middle, other.middle, strict=True))
        target = self.target + (other.target - self.target) * share
        focal = distance / (breadths[0] + (breadths[1] - breadths[0]) * share)
        return Camera(self.rotation, target, distance, focal, (x, y))

    def enlarged(self, times: int) -> Camera:
        """The same view on a picture with `times` as many pixels along each side."""
        x, y = self.middle
        return Camera(self.rotation, self.target, self.distance, self.focal * times, (x * times, y * times))


def orbit(azimuth: float, elevation: float) -> Float64[np.ndarray, "3 3"]:
    """The turn of a camera that stands at these angles (degrees): azimuth from +z towards +x, elevation upwards."""
    a, e = math.radians(azimuth), math.radians(elevation)
    back = np.array([math.sin(a) * math.cos(e), math.sin(e), math.cos(a) * math.cos(e)])
    right = np.array([math.cos(a), 0.0, -math.sin(a)])
    return np.stack([right, -np.cross(back, right), -back])


def bounds(points: Float32[np.ndarray, "*s d"]) -> tuple[Float64[np.ndarray, "d"], Float64[np.ndarray, "d"]]:
    """The lowest and the highest coordinates; axis by axis, which is many times faster than all at once."""
    axes = [points[..., axis] for axis in range(points.shape[-1])]
    return np.array([float(axis.min()) for axis in axes]), np.array([float(axis.max()) for axis in axes])


def frame(
    points: Float32[np.ndarray, "p 3"], rotation: Float64[np.ndarray, "3 3"], size: tuple[int, int], margin: float
) -> Camera:
    """A camera that shows all points as large as fits into `size` pixels, less a share of `margin` along each side."""
    low, high = bounds(points)
    target, radius = (low + high) / 2, max(float(np.linalg.norm(high - low)) / 2, 1e-6)
    plain = Camera(rotation, target, _EYE * radius, 1.0, (0.0, 0.0))
    start, end = (side[:2] for side in bounds(plain.project(plain.view(points))))
    room = np.array(size) * (1 - 2 * margin)
    focal = float((room / np.maximum(end - start, 1e-6)).min())
    x, y = np.array(size) / 2 - focal * (start + end) / 2
    return Camera(rotation, target, plain.distance, focal, (float(x), float(y)))
