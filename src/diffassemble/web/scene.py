"""The pieces of one puzzle in one browser's scene, whatever they are.

Pictures lie in the plane z = 0 of the scene, seen from below, so that x runs to the right and y down as everywhere;
objects stand as they are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import roma
import torch
import viser
from jaxtyping import Bool, Float, Float64
from PIL import Image
from torch import Tensor

from diffassemble.core import Poses, Puzzle
from diffassemble.rendering.animation import on_the_table
from diffassemble.rendering.picture import (
    Colour,
    confidence_colour,
    empty_board,
    fragment_colours,
    piece_images,
    tinted,
)

_LOCKED: Colour = (40, 160, 90)
_SELECTED: Colour = (220, 30, 110)
# From where a board is seen, whose longer side is 2, and from where an object, whose longest side is 1.
DISTANCE, BESIDE = 2.4, (1.1, -1.6, 0.9)
# How far the handles of a piece on a board reach, in cells.
REACH = 0.75
# Pieces of pictures are shown no larger than this, in pixels.
_PIXELS = 128
# Pieces of a picture lie a little above each other, so that it is clear which one is on top.
_LAYER = 0.0005
# Handles stand this far above all of them: the mouse takes hold of what is nearest to the eye.
_ABOVE = 0.02


def look_at(client: viser.ClientHandle, puzzle: Puzzle) -> None:
    """Put the browser's camera in front of a puzzle: right above a board, or at an object's side."""
    flat = puzzle.lattice is not None
    client.camera.up_direction = (0.0, -1.0, 0.0) if flat else (0.0, 0.0, 1.0)
    client.camera.position = (0.0, 0.0, -DISTANCE) if flat else BESIDE
    client.camera.look_at = (0.0, 0.0, 0.0)


class PuzzleScene:
    """Shows a puzzle's pieces as nodes of a scene; a click on one calls `on_click` with its number."""

    def __init__(self, scene: viser.SceneApi, puzzle: Puzzle, on_click: Callable[[int], None]) -> None:
        self.scene, self.puzzle = scene, puzzle
        self._flat = puzzle.lattice is not None
        if self._flat:
            self._pictures = piece_images(puzzle.pixels, min(_PIXELS, puzzle.pictures.size))
            board, scale = puzzle.board, puzzle.board.pitch
            empty = np.asarray(empty_board(board, max(4, 600 // max(board.rows, board.cols))))
            size = board.cols * scale, board.rows * scale
            scene.add_image("/board", empty, *size, cast_shadow=False, position=(0, 0, 0.01))
        else:
            self._colours = [tuple(colour) for colour in (fragment_colours(len(puzzle)) * 255).round().astype(int)]
        self.nodes = [self._add(number) for number in range(len(puzzle))]
        self._looks: list[tuple] = [(None, None)] * len(puzzle)
        for number, node in enumerate(self.nodes):
            # Clouds of points can't be hit.
            if not isinstance(node, viser.PointCloudHandle):
                node.on_click(lambda _, number=number: on_click(number))

    def show(self, poses: Poses) -> None:
        """Move all pieces."""
        places, turns = to_scene(poses)
        for number, node in enumerate(self.nodes):
            node.position = places[number] - np.array([0, 0, _LAYER * number if self._flat else 0])
            node.wxyz = turns[number]

    def colour(self, confidence: Float[Tensor, "n"] | None, locked: Bool[Tensor, "n"], selected: int | None) -> None:
        """Colour pieces by how sure they are, if that is asked for; frame the locked ones and the selected one."""
        for number in range(len(self.nodes)):
            sure = None if confidence is None else round(float(confidence[number]), 3)
            frame = _SELECTED if number == selected else _LOCKED if bool(locked[number]) else None
            if self._looks[number] != (sure, frame):
                self._looks[number] = (sure, frame)
                self._set_look(number, sure, frame)

    def handles(self, number: int) -> viser.TransformControlsHandle:
        """Arrows and arcs around a piece to move and turn it by; on a board only within its plane."""
        node = self.nodes[number]
        reach = REACH * self.puzzle.board.pitch if self._flat else 0.35
        place = np.array([*node.position[:2], -_LAYER * len(self.nodes) - _ABOVE]) if self._flat else node.position
        axes = (True, True, not self._flat)
        return self.scene.add_transform_controls(
            "/handles", scale=reach, active_axes=axes, depth_test=False, position=place, wxyz=node.wxyz
        )

    def follow(self, number: int, handles: viser.TransformControlsHandle) -> Poses:
        """Let a piece go with its handles; gives its pose."""
        node = self.nodes[number]
        node.position, node.wxyz = handles.position, handles.wxyz
        return from_scene(handles.position, handles.wxyz, 2 if self._flat else 3)

    def clear(self) -> None:
        """Take everything away again."""
        for node in self.nodes:
            node.remove()
        self.scene.remove_by_name("/board")

    def _add(self, number: int) -> viser.ImageHandle | viser.MeshHandle | viser.PointCloudHandle:
        name = f"/pieces/{number}"
        if self._flat:
            side = self.puzzle.board.pitch
            return self.scene.add_image(name, np.asarray(self._pictures[number]), side, side, cast_shadow=False)
        mesh, colour = self.puzzle.fragments.meshes[number], self._colours[number]
        vertices = mesh.vertices.numpy()
        if not len(mesh.faces):
            return self.scene.add_point_cloud(name, vertices, colour, point_size=0.01)
        faces = mesh.faces.numpy()
        return self.scene.add_mesh_simple(name, vertices, faces, color=colour, flat_shading=True, side="double")

    def _set_look(self, number: int, sure: float | None, frame: Colour | None) -> None:
        node = self.nodes[number]
        if isinstance(node, viser.ImageHandle):
            node.image = np.asarray(_framed(self._pictures[number], sure, frame))
            return
        colour = self._colours[number] if sure is None else confidence_colour(sure)
        if isinstance(node, viser.MeshHandle):
            node.color = frame or colour
        else:
            node.colors = np.array(frame or colour, dtype=np.uint8)


def laid_out(puzzle: Puzzle) -> Poses:
    """Pieces in the order given, as they lie, side by side: on the cells of the board, or in rows."""
    if puzzle.lattice is not None:
        return on_the_table(puzzle)
    order = torch.arange(len(puzzle))
    cols = max(1, round(len(puzzle) ** 0.5))
    row, col = order // cols, order % cols
    step = 1.2 * float(puzzle.fragments.points.norm(dim=-1).max())
    place = torch.stack([col - col.max() / 2, row - row.max() / 2, torch.zeros(len(order))], 1) * step
    return Poses(Poses.identity(len(puzzle), 3).rotation, place)


def to_scene(poses: Poses) -> tuple[Float64[np.ndarray, "n 3"], Float64[np.ndarray, "n 4"]]:
    """Places and quaternions (scalar first) in the scene; noisy poses get the nearest rotation."""
    rotation, place = poses.rotation.double(), poses.translation.double()
    if place.shape[1] == 2:
        space = torch.eye(3, dtype=torch.double).repeat(len(place), 1, 1)
        space[:, :2, :2] = rotation
        rotation, place = space, torch.nn.functional.pad(place, (0, 1))
    turns = roma.quat_xyzw_to_wxyz(roma.rotmat_to_unitquat(roma.special_procrustes(rotation)))
    return place.numpy(), turns.numpy()


def from_scene(place: Float64[np.ndarray, "3"], turn: Float64[np.ndarray, "4"], dimension: int) -> Poses:
    """The pose of one piece that stands at a place and quaternion of the scene."""
    rotation = roma.unitquat_to_rotmat(roma.quat_wxyz_to_xyzw(torch.from_numpy(np.asarray(turn, dtype=np.float64))))
    where = torch.from_numpy(np.asarray(place, dtype=np.float64))
    return Poses(rotation[None, :dimension, :dimension].float(), where[None, :dimension].float())


def _framed(picture: Image.Image, sure: float | None, frame: Colour | None) -> Image.Image:
    """A piece tinted by its confidence, with a coloured frame."""
    if sure is not None:
        picture = tinted(picture, sure, 0.55)
    if frame is None:
        return picture
    wide = max(1, picture.width // 14)
    framed = Image.new("RGB", picture.size, frame)
    framed.paste(picture.crop((wide, wide, picture.width - wide, picture.height - wide)), (wide, wide))
    return framed
