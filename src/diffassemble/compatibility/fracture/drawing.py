"""Points drawn evenly from triangles, many at once: a loop that numba compiles."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
@no_type_check
def draw(vertices, faces, chance):
    """One point for each row of three chances in [0, 1), evenly by area, triangle by triangle, and the unit normals.

    The surface's area is cut into as many equal parts as points are wanted, and each part gives one.
    """
    count = len(chance)
    ends = np.empty(len(faces))
    normals = np.empty((len(faces), 3), np.float32)
    total = 0.0
    for f in range(len(faces)):
        a, b, c = vertices[faces[f, 0]], vertices[faces[f, 1]], vertices[faces[f, 2]]
        ux, uy, uz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
        vx, vy, vz = c[0] - a[0], c[1] - a[1], c[2] - a[2]
        x, y, z = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        length = np.sqrt(float(x) * x + float(y) * y + float(z) * z)
        total += length
        ends[f] = total
        scale = 1 / max(length, 1e-30)
        normals[f, 0], normals[f, 1], normals[f, 2] = x * scale, y * scale, z * scale
    points, outward = np.empty((count, 3), np.float32), np.empty((count, 3), np.float32)
    f = 0
    for i in range(count):
        place = (i + chance[i, 0]) / count * total
        while f < len(faces) - 1 and ends[f] < place:
            f += 1
        s, t = chance[i, 1], chance[i, 2]
        if s + t > 1:
            s, t = 1 - s, 1 - t
        a, b, c = vertices[faces[f, 0]], vertices[faces[f, 1]], vertices[faces[f, 2]]
        for k in range(3):
            points[i, k] = a[k] + s * (b[k] - a[k]) + t * (c[k] - a[k])
            outward[i, k] = normals[f, k]
    return points, outward
