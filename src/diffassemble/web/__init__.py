"""The workbench in the browser: uploads, solving, inspection, correction, downloads. Nothing leaves this machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WorkbenchConfig:
    """The workbench's numbers: times in seconds, sizes in bytes, pixels or counts."""

    update: float = 0.1  # between updates of a page
    frame: float = 0.12  # between steps while playing
    patience: float = 90.0  # after which the work of a session ends that no page shows any more
    sweep: float = 5.0  # between searches for such sessions
    keep: float = 24 * 3600.0  # after which an unused session is removed
    undo: int = 200  # corrections that can be taken back
    request: int = 2_000_000  # bytes of a request that is no upload
    pixels: int = 24_000_000  # of the pictures of all flat pieces together …
    longest: int = 600  # … and along the longer side of one
    contour: int = 100  # points of an outline a mean width of a piece
    faces: int = 600_000  # triangles of all fragments together; finer meshes are shown coarser …
    points: int = 300_000  # … and so are clouds
    gap: float = 0.02  # gaps up to this share of the whole's size are coloured …
    sampled: int = 8000  # … by so many points of each surface
    probable: float = 0.3  # matches that are less probable draw no piece to its neighbour …
    matches: int = 20_000  # … and no more are sent
    pieces: int = 60  # listed at once
    files: int = 8  # named at once
    cut: int = 128  # pixels along a square piece that is cut here, at most


CONFIG = WorkbenchConfig()
