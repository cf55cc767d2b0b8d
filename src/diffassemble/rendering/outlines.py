"""Pictures of flat pieces of any outline: on the table, on their way, and blended into a whole.

Pieces are added up as light that they send out, colours times alpha, and divided by the alpha in the end: where two
meet in the middle of a pixel, they share it, and no seam is seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float32
from PIL import Image
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.assembly.shelves import shelves
from diffassemble.core import OutlinePieces, Poses, Puzzle
from diffassemble.core.poses import angles
from diffassemble.rendering.animation import between, eased
from diffassemble.rendering.picture import PANEL, TABLE, beside, confidence_colour, under_title, with_legend

Place = Float[np.ndarray, "2"]

# A pixel counts as covered from here on: rounding leaves seams a little short of 1.
_COVERED = 0.7
# Of a long history this many moments are passed through.
_MOMENTS = 6
# Room between pieces on a table, as a share of their mean size, and around them, of the whole.
_GAP, _EDGE = 0.12, 0.03
MOVING, _PAIR = 440, 280
# Pixels along the longer side of the picture that the network for upright views is given.
_LONGEST = 400
# Maps of confidence are no larger than this.
_MAP = 1600


@dataclass(frozen=True)
class Stage:
    """A part of the plane to be drawn: its top left corner, how large it is, and pixels a unit of length."""

    left: float
    top: float
    width: float
    height: float
    scale: float = 1.0

    @property
    def size(self) -> tuple[int, int]:
        return max(1, math.ceil(self.width * self.scale)), max(1, math.ceil(self.height * self.scale))

    def shown(self, points: Float[np.ndarray, "m 2"]) -> Float[np.ndarray, "m 2"]:
        """Where points of the plane lie in the picture."""
        return (points - [self.left, self.top]) * self.scale


def stage_around(
    outlines: Sequence[Float[np.ndarray, "_ 2"]], edge: float = 0.0, longest: int | None = None, scale: float = 1.0
) -> Stage:
    """All that outlines reach with a margin, a share of the longer side; no more pixels along that than `longest`."""
    low = np.min([points.min(0) for points in outlines], 0)
    high = np.max([points.max(0) for points in outlines], 0)
    margin = edge * float((high - low).max())
    left, top, width, height = np.concatenate([low - margin, high - low + 2 * margin]).tolist()
    most = math.inf if longest is None else longest / max(width, height)
    return Stage(left, top, width, height, min(scale, most))


def placed(assembly: Answer) -> Bool[np.ndarray, "n"]:
    """Which pieces have a place; all, where none was left out or nobody could be placed."""
    kept = np.array(assembly.placements.placed)
    return kept if kept.any() else np.ones(len(kept), bool)


def textures_at(pieces: OutlinePieces, scale: float) -> list[Image.Image]:
    """The pieces' pictures at a scale of at most 1."""
    images = [Image.fromarray(texture.permute(1, 2, 0).contiguous().numpy()) for texture in pieces.textures]
    if scale == 1:
        return images
    return [
        image.resize([max(1, round(side * scale)) for side in image.size], Image.Resampling.BOX) for image in images
    ]


class Patch:
    """A piece where it stands in a picture: the window that it takes up there, and where its pixels come from."""

    def __init__(self, image: Image.Image, pieces: OutlinePieces, index: int, stage: Stage, angle: float, place: Place):
        height, width = pieces.textures[index].shape[1:]
        across, down = pieces.origins[index].tolist()
        cosine, sine = math.cos(angle), math.sin(angle)
        corners = np.array([(x - across, y - down) for x in (0, width) for y in (0, height)])
        seen = stage.shown(corners @ np.array([[cosine, sine], [-sine, cosine]]) + place)
        self.image = image
        self.left, self.top = (np.floor(seen.min(0)).astype(int) - 1).tolist()
        self.right, self.bottom = (np.ceil(seen.max(0)).astype(int) + 1).tolist()
        # The inverse motion, from the window to the picture at hand, which may be smaller than the piece's own.
        x, y = stage.shown(place[None])[0] - [self.left, self.top]
        ratio = np.array([[image.width / width], [image.height / height]])
        turn = np.array([[cosine, sine], [-sine, cosine]]) / stage.scale
        self.inverse = ratio * np.concatenate([turn, [[across], [down]] - turn @ [[x], [y]]], 1)

    def add_to(self, canvas: Float32[np.ndarray, "h w 4"]) -> None:
        """Add its light to that of the others, in fractions of levels: rounded and cut off, it would show at seams."""
        rows = np.arange(max(0, self.top), min(canvas.shape[0], self.bottom))
        cols = np.arange(max(0, self.left), min(canvas.shape[1], self.right))
        if not (rows.size and cols.size):
            return
        way = 2 * self.inverse / np.array(self.image.size)[:, None]
        across = (cols - self.left + 0.5)[:, None] * way[:, 0] + way[:, 2] - 1
        down = (rows - self.top + 0.5)[:, None, None] * way[:, 1]
        grid = torch.from_numpy(across.astype(np.float32)) + torch.from_numpy(down.astype(np.float32))
        levels = torch.from_numpy(np.array(self.image)).permute(2, 0, 1).float()
        light = torch.cat([levels[:3] * (levels[3:] / 255), levels[3:]])
        sampled = F.grid_sample(light[None], grid[None], "bicubic", align_corners=False)
        canvas[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1] += sampled[0].permute(1, 2, 0).numpy()

    def lay_on(self, canvas: Image.Image) -> None:
        """Cover what lies there."""
        size, way = (self.right - self.left, self.bottom - self.top), self.inverse.ravel().tolist()
        over = self.image.transform(size, Image.Transform.AFFINE, way, resample=Image.Resampling.BILINEAR)
        canvas.paste(over, (self.left, self.top), over)


def _patches(images: Sequence[Image.Image], pieces: OutlinePieces, poses: Poses, stage: Stage) -> list[Patch]:
    rows = zip(images, angles(poses).tolist(), poses.translation.cpu().double().numpy(), strict=True)
    return [Patch(image, pieces, index, stage, angle, place) for index, (image, angle, place) in enumerate(rows)]


def light_of(
    images: Sequence[Image.Image], pieces: OutlinePieces, poses: Poses, stage: Stage, shown: Bool[np.ndarray, "n"]
) -> Float32[np.ndarray, "h w 4"]:
    """The light of pieces at their places, and its alpha, in levels."""
    width, height = stage.size
    light = np.zeros((height, width, 4), np.float32)
    for patch, wanted in zip(_patches(images, pieces, poses, stage), shown.tolist(), strict=True):
        if wanted:
            patch.add_to(light)
    return light


def blended(
    images: Sequence[Image.Image], pieces: OutlinePieces, poses: Poses, stage: Stage, shown: Bool[np.ndarray, "n"]
) -> Image.Image:
    """The pieces at their places, on a table, without seams where they meet."""
    light = light_of(images, pieces, poses, stage, shown)
    # In place: wholes may be large.
    alpha, colours, table = light[..., 3:] / 255, light[..., :3], np.array(TABLE, np.float32)
    colours /= np.maximum(alpha, 1e-3)
    colours -= table
    colours *= np.minimum(alpha / _COVERED, 1)
    colours += table
    return Image.fromarray(np.clip(np.rint(colours, out=colours), 0, 255, out=colours).astype(np.uint8))


def draw_assembly(assembly: Answer) -> Image.Image:
    """The whole at the pieces' own resolution, beginning where documents count from; what was left out is not shown."""
    pieces, poses, shown = assembly.puzzle.outlines, assembly.poses, placed(assembly)
    outlines = pieces.placed_contours(poses)
    left, top = pieces.corner(poses)
    right, bottom = np.max([points.max(0) for points, here in zip(outlines, shown, strict=True) if here], 0).tolist()
    stage = Stage(float(left), float(top), right - left, bottom - top)
    return blended(textures_at(pieces, 1.0), pieces, poses, stage, shown)


def laid_out(pieces: OutlinePieces, aspect: float = 1.0) -> Poses:
    """The pieces as they were given, in rows on a table of about this width to height, none over another."""
    low = np.stack([contour.amin(0).double().numpy() for contour in pieces.contours])
    high = np.stack([contour.amax(0).double().numpy() for contour in pieces.contours])
    sizes = high - low + _GAP * float((high - low).mean())
    places = torch.from_numpy(shelves(sizes, aspect) - (low + high) / 2).float()
    return Poses(torch.eye(2).repeat(len(pieces), 1, 1), places)


def draw_pieces(puzzle: Puzzle) -> Image.Image:
    """The pieces as they were given, beside each other."""
    pieces = puzzle.outlines
    return _fitted(pieces, laid_out(pieces), PANEL, np.ones(len(pieces), bool))


def draw_before_after(assembly: Answer) -> Image.Image:
    """The pieces as they were given beside what became of them, captioned."""
    pieces = assembly.puzzle.outlines
    shown = placed(assembly)
    whole = stage_around(
        [points for points, here in zip(pieces.placed_contours(assembly.poses), shown, strict=True) if here]
    )
    table = laid_out(pieces, min(max(whole.width / whole.height, 0.5), 2.0))
    before = _fitted(pieces, table, PANEL, np.ones(len(pieces), bool))
    whole = replace(whole, scale=min(1.0, before.height / whole.height))
    after = blended(textures_at(pieces, whole.scale), pieces, assembly.poses, whole, shown)
    after = after.resize((max(1, round(after.width * before.height / after.height)), before.height))
    absent = int((~shown).sum())
    result = "put together" + (f", {absent} unplaced" if absent else "")
    return beside(under_title(before, f"{len(pieces)} pieces, as they were given"), under_title(after, result))


def _fitted(pieces: OutlinePieces, poses: Poses, longest: int, shown: Bool[np.ndarray, "n"]) -> Image.Image:
    """Pieces wherever they stand, within a picture that long."""
    stage = stage_around(pieces.placed_contours(poses), _EDGE, longest)
    return blended(textures_at(pieces, stage.scale), pieces, poses, stage, shown)


def draw_confidence(assembly: Answer) -> Image.Image:
    """The whole in the colours of how sure each piece is, with a legend."""
    pieces, poses, shown = assembly.puzzle.outlines, assembly.poses, placed(assembly)
    outlines = [points for points, here in zip(pieces.placed_contours(poses), shown, strict=True) if here]
    stage = stage_around(outlines, longest=_MAP)
    images = [
        _tinted(image, float(sure))
        for image, sure in zip(textures_at(pieces, stage.scale), assembly.confidence, strict=True)
    ]
    picture = blended(images, pieces, poses, stage, shown)
    return with_legend(picture, f"confidence, mean {float(assembly.confidence.nanmean()):.2f}")


def _tinted(image: Image.Image, sure: float) -> Image.Image:
    """A piece in shades of the colour of its confidence, as transparent as it was."""
    grey = image.convert("RGB").convert("L").convert("RGB")
    shade = Image.blend(grey, Image.new("RGB", image.size, confidence_colour(sure)), 0.55)
    shade.putalpha(image.getchannel("A"))
    return shade


def draw_pair(assembly: Answer, first: int, second: int) -> Image.Image:
    """Two pieces beside each other as they are to be joined, apart by a little so that both can be told."""
    chosen = torch.tensor([first, second])
    pieces, poses = assembly.puzzle.outlines[chosen], assembly.poses[chosen]
    way = poses.translation[1] - poses.translation[0]
    size = float(pieces.areas.sqrt().mean())
    apart = 0.06 * size * way / way.norm().clamp(min=1e-6)
    poses = Poses(poses.rotation, poses.translation + torch.stack([-apart, apart]))
    return _fitted(pieces, poses, _PAIR, np.ones(2, bool))


def animate(assembly: Answer, frames: int = 48) -> list[Image.Image]:
    """Pieces moving from the table, through what the history tells, to their places, turning as they go.

    The last frame shows the whole as `draw_assembly` does, smaller. What was left out stays on the table.
    """
    pieces, end, shown = assembly.puzzle.outlines, assembly.poses, placed(assembly)
    outlines = [points for points, here in zip(pieces.placed_contours(end), shown, strict=True) if here]
    whole = stage_around(outlines)
    aspect = min(max(whole.width / whole.height, 0.5), 2.0)
    table = _beside(laid_out(pieces, aspect), whole)
    stations = [table, *(_onto(poses, table, shown) for poses in _moments(assembly.history)), _onto(end, table, shown)]
    reached = [points for station in (stations[0], stations[-1]) for points in pieces.placed_contours(station)]
    stage = stage_around(reached, _EDGE, MOVING)
    images = textures_at(pieces, stage.scale)
    moments = eased(np.linspace(0, 1, max(frames, 2))) * (len(stations) - 1)
    drawn = []
    for poses in between(stations, moments)[:-1]:
        drawn.append(Image.new("RGB", stage.size, TABLE))
        for patch in _patches(images, pieces, poses, stage):
            patch.lay_on(drawn[-1])
    return [*drawn, blended(images, pieces, stations[-1], stage, np.ones(len(pieces), bool))]


def _moments(history: Sequence[Poses]) -> list[Poses]:
    """A few moments of a history, without its last, which is the answer."""
    before = history[:-1]
    return [before[i] for i in np.linspace(0, len(before) - 1, min(_MOMENTS, len(before))).round().astype(int)]


def _beside(table: Poses, whole: Stage) -> Poses:
    """A table about the middle of the whole."""
    middle = torch.tensor([whole.left + whole.width / 2, whole.top + whole.height / 2])
    return Poses(table.rotation, table.translation + middle)


def _onto(poses: Poses, table: Poses, shown: Bool[np.ndarray, "n"]) -> Poses:
    """The same poses with what was left out still on the table."""
    here = torch.from_numpy(shown)
    rotation, translation = poses.rotation.detach().cpu().float(), poses.translation.detach().cpu().float()
    return Poses(
        torch.where(here[:, None, None], rotation, table.rotation),
        torch.where(here[:, None], translation, table.translation),
    )


def picture_of(pieces: OutlinePieces, poses: Poses, own: Bool[np.ndarray, "n"]) -> Float[Tensor, "3 h w"]:
    """The chosen pieces where they stand, colours in [0, 1]; NaN where nothing lies."""
    outlines = [curve for curve, here in zip(pieces.placed_contours(poses), own, strict=True) if here]
    stage = stage_around(outlines, longest=_LONGEST)
    light = light_of(textures_at(pieces, stage.scale), pieces, poses, stage, own)
    alpha = light[..., 3:] / 255
    colours = np.where(alpha > 0.3, light[..., :3] / np.maximum(alpha, 0.3) / 255, np.nan)
    return torch.from_numpy(colours.astype(np.float32)).movedim(-1, 0).clamp(0, 1)
