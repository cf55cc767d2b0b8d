"""Limits of input, which docs/GUIDE.md shows: one table for every reader, and one budget of memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from diffassemble.core.puzzle import InputError

MEMORY_VARIABLE = "DIFFASSEMBLE_MEMORY"
"""environment variable with the budget of memory in gigabytes, instead of the table"""


@dataclass(frozen=True)
class Limits:
    """The most of everything that is read or asked for."""

    memory: int = 4_000_000_000
    """bytes that one piece of work may take, by an estimate made before; less where less is free"""
    picture_bytes: int = 1_000_000_000
    """bytes of a picture file"""
    picture_pixels: int = 178_000_000
    """pixels of a picture, and of all square pieces together"""
    mesh_bytes: int = 2_000_000_000
    """bytes of a mesh file, and of all fragments together"""
    mesh_vertices: int = 10_000_000
    """corners or points of a mesh, instances counted each"""
    mesh_faces: int = 20_000_000
    """triangles of a mesh, instances counted each"""
    mesh_parts: int = 10_000
    """parts of a scene, instances counted each"""
    texture_pixels: int = 70_000_000
    """pixels of a picture on a mesh; larger ones are ignored"""
    archive_bytes: int = 1_000_000_000
    """bytes of a zip file, and of what it holds"""
    archive_entries: int = 2000
    """files in a zip file"""
    archive_ratio: int = 250
    """times that a zip file may grow; pictures and meshes never shrink to less than a hundredth"""
    archive_index: int = 4_000_000
    """bytes of a zip file's list of contents"""
    upload_bytes: int = 200_000_000
    """bytes that one session of the page may have uploaded and not yet opened"""
    document_bytes: int = 100_000_000
    """bytes of a JSON document, a list, a table, or a log"""
    document_depth: int = 16
    """records and lists within each other in a JSON document"""
    document_number: float = 1e15
    """how far from 0 numbers in documents and coordinates in meshes may be"""
    name_length: int = 250
    """bytes of a file's name, and characters of a path in a zip file"""
    model_bytes: int = 4_000_000_000
    """bytes of a file of weights or of a checkpoint"""
    cells: int = 1_000_000
    """cells of a grid"""
    spare_cells: int = 100
    """cells of a grid for each piece that is there"""
    outlines: int = 3000
    """flat pieces of any outline in a puzzle"""
    fragments: int = 500
    """fragments in a puzzle"""
    network_width: int = 4096
    """width of any part of a network"""
    network_layers: int = 256
    """layers of a network"""
    samples: int = 10_000
    """answers that a solver draws"""
    steps: int = 100_000
    """denoising steps, and times of a diffusion"""
    cases: int = 1_000_000
    """puzzles of one row of a table"""
    batch: int = 100_000
    """pieces, points, objects or pictures that a step of training learns from"""
    processes: int = 256
    """processes that learn together on one machine"""
    points: int = 1_000_000
    """points that are drawn of a fragment or an object"""
    count: int = 1_000_000_000
    """whatever else is counted"""


LIMITS = Limits()


def memory_budget() -> int | float:
    """Bytes that one piece of work may take: by the environment, or else by the table and what is free."""
    wanted = os.environ.get(MEMORY_VARIABLE)
    if wanted is None:
        return min([LIMITS.memory, *(0.8 * free for free in _free())])
    with suppress(ValueError):
        if 0 < (budget := 1e9 * float(wanted)) < 1e18:
            return budget
    raise InputError(f"{MEMORY_VARIABLE}={wanted!r} is no number of gigabytes; write {MEMORY_VARIABLE}=8")


def check_memory(needed: int | float, what: str, advice: str) -> None:
    """Refuse work whose estimate, in bytes, is above the budget, before anything is allocated for it."""
    if needed <= 0.1 * LIMITS.memory:
        return
    if needed > (budget := memory_budget()):
        raise InputError(
            f"{what} would take about {needed / 1e9:.1f} GB of memory, but {budget / 1e9:.1f} GB may be used; "
            f"{advice}, or allow more by {MEMORY_VARIABLE}=GB"
        )


def check_count(count: int, most: int, piece: str, source: Path) -> None:
    """Refuse numbers of pieces that make no puzzle, or more than can be solved."""
    if count < 2:
        raise InputError(f"{source}: has only {count} {piece}; a puzzle needs at least 2")
    if count > most:
        raise InputError(f"{source}: has {count} {piece}s; at most {most} are put together at once")


def _free() -> Iterator[float]:
    """Bytes that the system and this process's group have left, where they are known."""
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        yield 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):
        yield float((group / "memory.max").read_text()) - float((group / "memory.current").read_text())
