"""Assemblies as pictures and animations."""

from diffassemble.rendering.animation import animate, encode_gif, save_gif
from diffassemble.rendering.image import draw_assembly, draw_before_after, draw_confidence, draw_poses

__all__ = [
    "animate",
    "draw_assembly",
    "draw_before_after",
    "draw_confidence",
    "draw_poses",
    "encode_gif",
    "save_gif",
]
