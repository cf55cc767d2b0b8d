"""Assemblies as moving pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from diffassemble.assembly.answer import Answer
from diffassemble.core import Poses, Puzzle
from diffassemble.core.poses import angles, plane_rotations
from diffassemble.rendering.picture import centres, empty_board, lay_pieces, piece_images

WIDTH = 480
GIF_WIDTHS = (480, 400, 340, 280, 220, 160)


def animate(assembly: Answer, frames: int = 48) -> list[Image.Image]:
    """Pieces moving from where the solver first saw them to their places, turning as they go.

    Follows `assembly.history`; without one, the pieces set out from the table, in the order given. The last
    frame shows the assembly itself. All frames have one size, with a quarter of a board of table around.
    """
    keys = _key_poses(assembly)
    board = assembly.puzzle.board
    cell = max(2, round(WIDTH / 1.5 / board.extent))
    margin = round(board.extent * cell / 4)
    moments = eased(np.linspace(0, 1, max(frames, 2))) * (len(keys) - 1)
    images, table = piece_images(assembly.puzzle.pixels, cell), empty_board(board, cell, margin)
    drawn = []
    for poses in between(keys, moments):
        drawn.append(table.copy())
        lay_pieces(drawn[-1], images, centres(board, poses, cell) + margin, angles(poses))
    return drawn


def encode_gif(
    frames: Sequence[Image.Image], *, milliseconds: int = 60, hold: int = 2000, limit: int = 3_000_000
) -> bytes:
    """A looping GIF that rests on its last frame, as wide as fits into `limit` bytes (at most 480 pixels)."""
    durations = [10 * milliseconds] + [milliseconds] * (len(frames) - 2) + [hold]
    for width in GIF_WIDTHS:
        encoded = _encode(frames, min(width, frames[0].width), durations[-len(frames) :])
        if len(encoded) <= limit:
            break
    return encoded


def _encode(frames: Sequence[Image.Image], width: int, durations: list[int]) -> bytes:
    height = round(frames[0].height * width / frames[0].width)
    small = [frame.resize((width, height), Image.Resampling.LANCZOS) for frame in frames]
    # One palette for all frames: colours neither flicker nor cost bytes again and again.
    seen = Image.new("RGB", (width, 2 * height))
    seen.paste(small[0], (0, 0))
    seen.paste(small[-1], (0, height))
    palette = seen.quantize(256, method=Image.Quantize.FASTOCTREE)
    flat = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in small]
    buffer = io.BytesIO()
    moving = {"save_all": True, "append_images": flat[1:], "duration": durations, "loop": 0}
    flat[0].save(buffer, format="GIF", **moving, optimize=True, disposal=1)
    return buffer.getvalue()


def _key_poses(assembly: Answer) -> list[Poses]:
    """The poses to pass through: at least two, the last one the answer."""
    keys, end = list(assembly.history), assembly.poses
    now = keys[-1] if keys else None
    if now is None or not (torch.equal(now.translation, end.translation) and torch.equal(now.rotation, end.rotation)):
        keys.append(end)
    return [on_the_table(assembly.puzzle), *keys] if len(keys) == 1 else keys


def on_the_table(puzzle: Puzzle) -> Poses:
    """The pieces in the order given, as they lie, on the first cells of the board."""
    order = torch.arange(len(puzzle))
    return puzzle.board.poses(order % puzzle.board.cells, torch.zeros_like(order))


def eased(time: Any) -> Any:
    """Start gently and come softly to rest: 0 → 0, 1 → 1, flat at both ends and beyond; of one time, or of many."""
    inside = np.clip(time, 0.0, 1.0)
    return inside * inside * (3 - 2 * inside)


def between(keys: list[Poses], moments: NDArray[np.float64]) -> list[Poses]:
    """Poses at fractional positions of the key list; turns take the shorter way round."""
    places = np.stack([key.translation.detach().cpu().double().numpy() for key in keys])
    turns = np.unwrap(np.stack([angles(key) for key in keys]), axis=0)
    below = np.minimum(moments.astype(int), len(keys) - 2)
    share = moments - below
    result = []
    for start, part in zip(below, share, strict=True):
        angle = torch.from_numpy(turns[start] + (turns[start + 1] - turns[start]) * part)
        place = torch.from_numpy(places[start] + (places[start + 1] - places[start]) * part)
        result.append(Poses(plane_rotations(angle).float(), place.float()))
    return result
