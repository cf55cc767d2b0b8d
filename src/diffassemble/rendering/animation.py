"""Pieces on their way to their places, in the plane and in space, and moving pictures of it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from diffassemble.core import Poses
from diffassemble.core.poses import angles, plane_rotations
from diffassemble.rendering.picture import STYLE, Style


def eased(time: Any) -> Any:
    """Start gently and come softly to rest: 0 → 0, 1 → 1, flat at both ends and beyond; of one time, or of many."""
    inside = np.clip(time, 0.0, 1.0)
    return inside * inside * (3 - 2 * inside)


def on_the_way(before: Poses, after: Poses, share: Float[Tensor, "n"]) -> Poses:
    """Poses at shares (0…1) of the shorter ways from `before` to `after`; in the plane rotations may be noisy."""
    share = share.double()
    start, end = before.translation.cpu().double(), after.translation.cpu().double()
    places = (start + share[:, None] * (end - start)).float()
    if places.shape[1] == 2:
        first, second = torch.from_numpy(angles(before)), torch.from_numpy(angles(after))
        way = torch.remainder(second - first + torch.pi, 2 * torch.pi) - torch.pi
        return Poses(plane_rotations(first + share * way).float(), places)
    from scipy.spatial.transform import Rotation

    way = Rotation.from_matrix((before.rotation.mT @ after.rotation).numpy()).as_rotvec()
    turns = Rotation.from_rotvec(share[:, None].numpy() * way).as_matrix()
    return Poses(before.rotation @ torch.from_numpy(turns).float(), places)


def along(stations: Sequence[Poses], moments: Float[Tensor, "n"]) -> Poses:
    """Where each piece is at its own moment of the way through k stations: 0 is the first one, k − 1 the last."""
    passed = moments.long().clamp(max=len(stations) - 2)
    who = torch.arange(len(moments))
    rotation = torch.stack([station.rotation.cpu() for station in stations])
    translation = torch.stack([station.translation.cpu() for station in stations])
    before, after = (Poses(rotation[at, who], translation[at, who]) for at in (passed, passed + 1))
    return on_the_way(before, after, moments - passed)


def few_moments(history: Sequence[Poses], style: Style = STYLE) -> list[Poses]:
    """A few moments of a history, evenly spread, without its last, which is the answer: more would only tremble."""
    before = history[:-1]
    return [before[at] for at in np.linspace(0, len(before) - 1, min(style.moments, len(before))).round().astype(int)]


def encode_gif(frames: Sequence[Image.Image], style: Style = STYLE, *, limit: int | None = None) -> bytes:
    """A looping GIF that rests on its last frame, as wide as fits into `limit` bytes (those of `style`)."""
    durations = [10 * style.milliseconds] + [style.milliseconds] * (len(frames) - 2) + [style.rest]
    for width in style.gif_widths:
        encoded = _encode(frames, min(width, frames[0].width), durations[-len(frames) :])
        if len(encoded) <= (limit or style.gif_bytes):
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
