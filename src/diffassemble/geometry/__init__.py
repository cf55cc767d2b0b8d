"""Rotations and rigid motions, in any dimension."""

from diffassemble.geometry.poses import Poses
from diffassemble.geometry.turns import nearest_turn, turn_matrix, turn_pixels

__all__ = ["Poses", "nearest_turn", "turn_matrix", "turn_pixels"]
