"""Pictures of flat pieces, squares and any outline: on a table, on their way, blended into a whole, and as a plan.

Pieces are added up as light that they send out, colours times alpha, and divided by the alpha in the end: where two
meet in the middle of a pixel, they share it, and no seam is seen. All lengths are pixels of the pieces' pictures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float32
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.assembly.layout import on_table
from diffassemble.core import OutlinePieces, Poses, Puzzle, turn_pixels
from diffassemble.core.poses import angles
from diffassemble.core.puzzle import labels
from diffassemble.core.thresholds import LIKELY
from diffassemble.rendering.animation import along, eased, few_moments
from diffassemble.rendering.picture import STYLE, Style, beside, confidence_colour, under_title, with_legend

Place = Float[np.ndarray, "2"]


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
        """Points of the plane in pixels of the picture."""
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


def textures_at(pieces: OutlinePieces, scale: float) -> list[Image.Image]:
    """The pieces' pictures at a scale of at most 1."""
    images = [Image.fromarray(texture.permute(1, 2, 0).contiguous().numpy()) for texture in pieces.textures]
    sizes = [[max(1, round(side * scale)) for side in image.size] for image in images]
    # Of the same size they are copied.
    return [image.resize(size, Image.Resampling.BOX) for image, size in zip(images, sizes, strict=True)]


class Patch:
    """A piece in a picture: its window there, and the motion from the window to the piece's own pixels."""

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
        """Cover what is there."""
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


def picture_of(
    pieces: OutlinePieces, poses: Poses, own: Bool[np.ndarray, "n"], longest: int = 400
) -> Float[Tensor, "3 h w"]:
    """The chosen pieces at their poses, colours in [0, 1]; NaN where there is none."""
    outlines = [curve for curve, here in zip(pieces.placed_contours(poses), own, strict=True) if here]
    stage = stage_around(outlines, longest=longest)
    light = light_of(textures_at(pieces, stage.scale), pieces, poses, stage, own)
    alpha = light[..., 3:] / 255
    colours = np.where(alpha > 0.3, light[..., :3] / np.maximum(alpha, 0.3) / 255, np.nan)
    return torch.from_numpy(colours.astype(np.float32)).movedim(-1, 0).clamp(0, 1)


class Sheet:
    """A flat puzzle as it is drawn: square pieces are outlines of four corners, and their board is a grey ground."""

    def __init__(self, puzzle: Puzzle, style: Style = STYLE) -> None:
        self.style, self.board = style, None if puzzle.lattice is None else puzzle.board
        if self.board is None:
            self.pieces = puzzle.outlines
            return
        height, width = puzzle.pictures.height, puzzle.pictures.width
        self.size = torch.tensor([float(width), float(height)])
        levels = (puzzle.pixels.detach().cpu() * 255).round().clamp(0, 255).byte()
        opaque = torch.full_like(levels[:, :1], 255)
        corners = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]) * self.size / 2
        origins = (self.size / 2).repeat(len(puzzle), 1)
        self.pieces = OutlinePieces(tuple(torch.cat([levels, opaque], 1)), (corners,) * len(puzzle), origins)

    def in_pixels(self, poses: Poses) -> Poses:
        """Poses of the puzzle in pixels of the pieces' pictures."""
        poses = Poses(poses.rotation.detach().cpu().float(), poses.translation.detach().cpu().float())
        if self.board is None:
            return poses
        return Poses(poses.rotation, poses.translation / self.board.pitch * self.size)

    def ground(self, outlines: Sequence[Float[np.ndarray, "_ 2"]]) -> list[Float[np.ndarray, "_ 2"]]:
        """What a picture of the whole shows: these outlines, or the board."""
        if self.board is None:
            return list(outlines)
        reach = np.array([self.board.cols, self.board.rows]) * self.size.numpy() / 2
        return [np.stack([-reach, reach])]

    def canvas(self, stage: Stage, ground: bool = True) -> Image.Image:
        """An empty table, with the board on it if there is one."""
        canvas = Image.new("RGB", stage.size, self.style.table)
        if ground and self.board is not None:
            (left, top), (right, low) = stage.shown(self.ground([])[0]).round().tolist()
            ImageDraw.Draw(canvas).rectangle((left, top, right - 1, low - 1), fill=self.style.empty_cell)
        return canvas

    def blended(
        self,
        poses: Poses,
        stage: Stage,
        shown: Bool[np.ndarray, "n"],
        images: Sequence[Image.Image] | None = None,
        ground: bool = True,
    ) -> Image.Image:
        """The pieces at their places, without seams where they meet."""
        images = textures_at(self.pieces, min(stage.scale, 1.0)) if images is None else images
        light = light_of(images, self.pieces, poses, stage, shown)
        # In place: wholes may be large.
        alpha, colours = light[..., 3:] / 255, light[..., :3]
        table = np.asarray(self.canvas(stage, ground), np.float32)
        colours /= np.maximum(alpha, 1e-3)
        colours -= table
        colours *= np.minimum(alpha / self.style.covered, 1)
        colours += table
        return Image.fromarray(np.clip(np.rint(colours, out=colours), 0, 255, out=colours).astype(np.uint8))

    def laid_out(self, aspect: float = 1.0) -> Poses:
        """The pieces as they were given, in rows on a table of about this width to height, none over another."""
        curves = [contour.double().numpy() for contour in self.pieces.contours]
        low, high = (np.stack([reach(curve, 0) for curve in curves]) for reach in (np.min, np.max))
        places = on_table(low, high, self.style.room * float((high - low).mean()), aspect)
        return Poses(torch.eye(2).repeat(len(low), 1, 1), torch.from_numpy(places).float())

    def stage(self, outlines: Sequence[Float[np.ndarray, "_ 2"]], longest: int, edge: float = 0.0) -> Stage:
        """A picture of outlines that long; only square pieces, which are often small, are enlarged for it."""
        return stage_around(outlines, edge, longest, 1.0 if self.board is None else math.inf)

    def table(self, poses: Poses, longest: int) -> Image.Image:
        """All pieces at their poses, within a picture that long."""
        stage = self.stage(self.pieces.placed_contours(poses), longest, self.style.around)
        return self.blended(poses, stage, np.ones(len(poses), bool), ground=False)


class _Whole:
    """What the pictures of an answer share: its pieces in pixels, which of them are shown, and what they reach."""

    def __init__(self, assembly: Answer) -> None:
        self.sheet = Sheet(assembly.puzzle)
        self.pieces, self.poses = self.sheet.pieces, self.sheet.in_pixels(assembly.poses)
        self.shown = np.array(assembly.placements.placed)
        if not self.shown.any():  # where nothing has a place, all are shown
            self.shown = np.ones(len(self.shown), bool)
        outlines = self.pieces.placed_contours(self.poses)
        self.outlines = [points for points, here in zip(outlines, self.shown, strict=True) if here]
        self.ground = self.sheet.ground(self.outlines)
        self.around = stage_around(self.ground)
        self.aspect = min(max(self.around.width / self.around.height, 0.5), 2.0)


def draw_assembly(assembly: Answer) -> Image.Image:
    """The placed pieces at their own resolution, from where documents count; squares are copied into their cells."""
    if assembly.puzzle.lattice is not None:
        return _copied(assembly)
    whole = _Whole(assembly)
    left, top = whole.pieces.corner(whole.poses)
    right, bottom = np.max([points.max(0) for points in whole.outlines], 0).tolist()
    return whole.sheet.blended(whole.poses, Stage(float(left), float(top), right - left, bottom - top), whole.shown)


def _copied(assembly: Answer) -> Image.Image:
    board, pieces = assembly.puzzle.board, assembly.puzzle.pictures
    cells, turns = board.snap(assembly.poses)
    levels = (turn_pixels(pieces.pixels, turns).detach().cpu() * 255).round().clamp(0, 255).byte()
    canvas = Image.new("RGB", (board.cols * pieces.width, board.rows * pieces.height), STYLE.empty_cell)
    for pixels, cell in zip(levels.permute(0, 2, 3, 1).numpy(), cells.tolist(), strict=True):
        canvas.paste(Image.fromarray(pixels), (cell % board.cols * pieces.width, cell // board.cols * pieces.height))
    return canvas


def draw_pieces(puzzle: Puzzle, style: Style = STYLE) -> Image.Image:
    """The pieces as they were given, beside each other."""
    sheet = Sheet(puzzle, style)
    aspect = 1.0 if sheet.board is None else sheet.board.cols / sheet.board.rows
    return sheet.table(sheet.laid_out(aspect), style.panel)


def draw_before_after(assembly: Answer, style: Style = STYLE) -> Image.Image:
    """The pieces as they were given beside what became of them, captioned."""
    whole = _Whole(assembly)
    before = whole.sheet.table(whole.sheet.laid_out(whole.aspect), style.panel)
    scale = min(1.0, before.height / whole.around.height)
    after = whole.sheet.blended(whole.poses, replace(whole.around, scale=scale), whole.shown)
    after = after.resize((max(1, round(after.width * before.height / after.height)), before.height))
    count, board, absent = len(assembly.puzzle), whole.sheet.board, int((~whole.shown).sum())
    result = "put together" if board is None else f"put together, {board.rows} by {board.cols}"
    missing = 0 if board is None else board.cells - count
    result += (f", {missing} missing" if missing else "") + (f", {absent} unplaced" if absent else "")
    return beside(under_title(before, f"{count} pieces, as they were given"), under_title(after, result))


def draw_confidence(assembly: Answer, style: Style = STYLE) -> Image.Image:
    """The whole in the colours of confidence, with a legend."""
    whole = _Whole(assembly)
    stage = whole.sheet.stage(whole.ground, style.map if whole.sheet.board is None else style.panel)
    looks = textures_at(whole.pieces, min(stage.scale, 1.0))
    images = [tinted(image, sure) for image, sure in zip(looks, assembly.confidence.tolist(), strict=True)]
    return with_legend(whole.sheet.blended(whole.poses, stage, whole.shown, images), assembly.confidence)


def tinted(image: Image.Image, sure: float, style: Style = STYLE) -> Image.Image:
    """A piece in shades of the colour of its confidence, as transparent as it was."""
    grey = image.convert("RGB").convert("L").convert("RGB")
    shade = Image.blend(grey, Image.new("RGB", image.size, confidence_colour(sure)), style.tint)
    shade.putalpha(image.getchannel("A"))
    return shade


def draw_pair(assembly: Answer, first: int, second: int, style: Style = STYLE) -> Image.Image:
    """Two pieces as they are to be joined, a little apart so that each can be seen."""
    chosen = torch.tensor([first, second])
    sheet = Sheet(assembly.puzzle.reordered(chosen), style)
    poses = sheet.in_pixels(assembly.poses[chosen])
    way = poses.translation[1] - poses.translation[0]
    apart = style.room / 2 * float(sheet.pieces.areas.sqrt().mean()) * way / way.norm().clamp(min=1e-6)
    return sheet.table(Poses(poses.rotation, poses.translation + torch.stack([-apart, apart])), style.pair)


def animate(assembly: Answer, frames: int = 48, style: Style = STYLE) -> list[Image.Image]:
    """Pieces moving from the table through a few moments of the history to their places; unplaced ones stay there."""
    whole = _Whole(assembly)
    sheet, here = whole.sheet, torch.from_numpy(whole.shown)[:, None]
    around, table = whole.around, sheet.laid_out(whole.aspect)
    middle = torch.tensor([around.left + around.width / 2, around.top + around.height / 2])
    table = Poses(table.rotation, table.translation + middle)
    stations = [table]
    for poses in (*map(sheet.in_pixels, few_moments(assembly.history, style)), whole.poses):
        rotation = torch.where(here[..., None], poses.rotation, table.rotation)
        stations.append(Poses(rotation, torch.where(here, poses.translation, table.translation)))
    reached = [points for one in (table, stations[-1]) for points in whole.pieces.placed_contours(one)]
    stage = sheet.stage([*reached, *whole.ground], style.moving, style.around)
    images = textures_at(whole.pieces, min(stage.scale, 1.0))
    drawn = []
    for moment in (eased(np.linspace(0, 1, max(frames, 2))) * (len(stations) - 1))[:-1]:
        drawn.append(sheet.canvas(stage))
        for patch in _patches(images, whole.pieces, along(stations, torch.full((len(table),), float(moment))), stage):
            patch.lay_on(drawn[-1])
    return [*drawn, sheet.blended(stations[-1], stage, np.ones(len(table), bool), images)]


def draw_plan(assembly: Answer, style: Style = STYLE) -> Image.Image:
    """The whole, pale, with outlines, numbers, arrows to where the top of each piece's picture points, and degrees."""
    whole = _Whole(assembly)
    sizes = whole.pieces.areas.sqrt().tolist()
    around = stage_around(whole.outlines, 0.01)
    scale = min(style.numbered / float(np.median(sizes)), style.longest_plan / max(around.width, around.height))
    stage = stage_around(whole.outlines, 0.01, scale=scale)
    picture = whole.sheet.blended(whole.poses, stage, whole.shown)
    canvas = Image.blend(Image.new("RGB", picture.size, "white"), picture, style.pale)
    draw, turned = ImageDraw.Draw(canvas), angles(whole.poses)
    names, sure = labels(assembly.puzzle.names), assembly.placements.trust.tolist()
    chosen = np.flatnonzero(whole.shown).tolist()
    for index, points in zip(chosen, whole.outlines, strict=True):
        doubtful = assembly.objects is not None and sure[index] < LIKELY
        ring = [(float(x), float(y)) for x, y in stage.shown(points)]
        draw.line([*ring, ring[0]], fill=style.doubtful if doubtful else style.ink, width=3 if doubtful else 1)
    for index in chosen:
        place = stage.shown(whole.poses.translation[index].double().numpy()[None])[0]
        _mark(draw, place, scale * sizes[index], names[index], float(turned[index]), style)
    lines = ["Numbers are those of the pieces' files, and of found.png."]
    lines.append("The arrow shows where the top of the piece's picture points; degrees are its turn, clockwise.")
    lines += ["Pieces outlined in red are guessed."] if assembly.objects is not None else []
    unplaced = [names[index] for index in range(len(names)) if not whole.shown[index]]
    return _with_key(canvas, [*lines, f"Unplaced: {', '.join(unplaced)}"] if unplaced else lines, style)


def _mark(draw: ImageDraw.ImageDraw, place: Place, size: float, label: str, angle: float, style: Style) -> None:
    """A piece's number, an arrow to where its top points, and by how many degrees it was turned clockwise."""
    x, y = place.tolist()
    big = ImageFont.load_default(size=max(8.0, 0.26 * size))
    draw.text((x, y), label, fill=style.ink, font=big, anchor="mm", stroke_width=2, stroke_fill="white")
    towards = np.array([math.sin(angle), -math.cos(angle)])
    begin, end = place + 0.22 * size * towards, place + 0.45 * size * towards
    across = np.array([-towards[1], towards[0]])
    neck = end - 0.12 * size * towards
    for colour, width in (("white", 5), (style.arrow, 2)):
        draw.line([tuple(begin.tolist()), tuple(neck.tolist())], fill=colour, width=width)
    head = (end, neck + 0.07 * size * across, neck - 0.07 * size * across)
    draw.polygon([tuple(point.tolist()) for point in head], fill=style.arrow, outline="white")
    if size >= style.numbered / 2:
        small = ImageFont.load_default(size=max(9.0, 0.14 * size))
        # Above or below the number, wherever the arrow is not.
        at = x, y + math.copysign(0.25 * size, -towards[1])
        degrees = f"{round(math.degrees(angle)) % 360}°"
        draw.text(at, degrees, fill=style.arrow, font=small, anchor="mm", stroke_width=2, stroke_fill="white")


def _with_key(plan: Image.Image, key: Sequence[str], style: Style) -> Image.Image:
    """The plan over a few lines that explain it, wrapped where they would be wider."""
    font, high, width = ImageFont.load_default(size=16), 24, max(plan.width, 320)
    lines = [line for text in key for line in wrap(text, int((width - 24) * len(text) / font.getlength(text)))]
    canvas = Image.new("RGB", (width, plan.height + high * len(lines) + 20), style.table)
    canvas.paste(plan, ((width - plan.width) // 2, 0))
    draw = ImageDraw.Draw(canvas)
    for number, text in enumerate(lines):
        draw.text((12, plan.height + 10 + high * number), text, fill=style.ink, font=font)
    return canvas


DRAWN = (draw_pieces, draw_assembly, draw_before_after, draw_confidence, animate)
"""what every `Drawing` has, in its order"""
