"""Assemblies as pictures and animations, whatever their pieces are."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from PIL import Image

from diffassemble.core import Assembly, FragmentPieces, ImagePieces
from diffassemble.rendering import animation, mesh
from diffassemble.rendering import picture as image
from diffassemble.rendering.animation import encode_gif, save_gif
from diffassemble.rendering.picture import draw_poses


class _Drawer(NamedTuple):
    """Those who draw one kind of pieces."""

    assembly: Callable[[Assembly], Image.Image]
    before_after: Callable[[Assembly], Image.Image]
    confidence: Callable[[Assembly], Image.Image]
    animation: Callable[[Assembly, int], list[Image.Image]]


_DRAWERS = {
    ImagePieces: _Drawer(image.draw_assembly, image.draw_before_after, image.draw_confidence, animation.animate),
    FragmentPieces: _Drawer(mesh.draw_assembly, mesh.draw_before_after, mesh.draw_confidence, mesh.animate),
}


def draw_assembly(assembly: Assembly) -> Image.Image:
    """The assembled picture, pixel by pixel, or a view of the assembled object."""
    return _drawer(assembly).assembly(assembly)


def draw_before_after(assembly: Assembly) -> Image.Image:
    """The pieces as they were given beside what became of them, captioned."""
    return _drawer(assembly).before_after(assembly)


def draw_confidence(assembly: Assembly) -> Image.Image:
    """What was assembled in the colours of how sure each piece is, with a legend."""
    return _drawer(assembly).confidence(assembly)


def animate(assembly: Assembly, frames: int = 48) -> list[Image.Image]:
    """Pieces on their way to their places, as the solver's history tells it; the last frame shows the assembly."""
    return _drawer(assembly).animation(assembly, frames)


def _drawer(assembly: Assembly) -> _Drawer:
    return _DRAWERS[type(assembly.puzzle.pieces)]


__all__ = [
    "animate",
    "draw_assembly",
    "draw_before_after",
    "draw_confidence",
    "draw_poses",
    "encode_gif",
    "save_gif",
]
