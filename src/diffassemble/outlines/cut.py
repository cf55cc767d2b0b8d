"""A picture becomes pieces of any outline with true poses: jigsaw pieces with tabs, torn paper, shards, strips."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from scipy.ndimage import label
from scipy.spatial import cKDTree
from torch import Tensor

from diffassemble.core import InputError, Poses, Puzzle
from diffassemble.core.contours import outline_pieces, perimeter, resample
from diffassemble.core.limits import LIMITS
from diffassemble.core.pieces import surviving
from diffassemble.core.seeds import check_seed
from diffassemble.io.pictures import MOST_PIXELS, read_picture
from diffassemble.outlines.partition import Outline, sheet_outlines

USUAL_SIZE = {"tabs": 80, "torn": 80, "shards": 80, "strips": 24}
"""pixels across a piece, to which pictures are enlarged if need be, so that outlines are fine enough to match; of
strips it is their width"""
SHAPES = tuple(USUAL_SIZE)
USUAL_EROSION = {"shards": 2}
"""pixels that pieces lose all around if nothing else is given: shards are chipped"""


@dataclass(frozen=True)
class CutConfig:
    """How pieces are cut out of a picture."""

    smallest: int = 12
    """least pixels across a piece; below it, outlines hold too little to match"""
    fewest: int = 4
    """least pixels across a piece of the picture as it is, before it is enlarged"""
    core: float = 0.97
    """brightness of the core of torn paper"""
    margin: int = 2
    """empty pixels around a piece in its picture"""


CUT = CutConfig()


def coverage(curve: Float[np.ndarray, "c 2"], height: int, width: int) -> Float[np.ndarray, "{height} {width}"]:
    """The exact share of every pixel inside a closed curve, which runs clockwise as seen and within the picture.

    Outlines that share a border share out its pixels: their shares add up to 1. What an edge covers to its right is
    added up along the rows: upward edges have the inside to their right, downward ones the outside.
    """
    start = np.asarray(curve, np.float64)
    way = np.roll(start, -1, 0) - start
    # Edges are cut where they enter another pixel, so that each part is in one.
    edges, cuts = [np.arange(len(start))], [np.zeros(len(start))]
    for axis in range(2):
        low, high = np.sort([start[:, axis], start[:, axis] + way[:, axis]], 0)
        first, count = np.ceil(low), np.maximum(np.floor(high) - np.ceil(low) + 1, 0).astype(int)
        count[way[:, axis] == 0] = 0
        edge = np.repeat(np.arange(len(start)), count)
        line = first[edge] + np.arange(len(edge)) - np.repeat(count.cumsum() - count, count)
        edges.append(edge)
        cuts.append((line - start[edge, axis]) / way[edge, axis])
    edge, cut = np.concatenate(edges), np.concatenate(cuts)
    order = np.lexsort((cut, edge))
    edge, cut = edge[order], cut[order].clip(0, 1)
    following = np.where(np.roll(edge, -1) == edge, np.roll(cut, -1), 1.0)
    x, y = (start[edge] + way[edge] * ((cut + following) / 2)[:, None]).T
    column, row = np.floor(x).astype(int).clip(0, width - 1), np.floor(y).astype(int).clip(0, height - 1)
    share, beyond = -way[edge, 1] * (following - cut), x - column
    at = row * (width + 1) + column
    amount = np.bincount(at, share * (1 - beyond), height * (width + 1))
    amount += np.bincount(at + 1, share * beyond, height * (width + 1))
    return amount.reshape(height, width + 1).cumsum(1)[:, :-1]


def cut_shapes(
    picture: Float[Tensor, "3 H W"],
    shape: str,
    pieces: int,
    generator: torch.Generator,
    *,
    size: int | None = None,
    missing: float = 0.0,
    erode: int = 0,
    turn: bool = True,
) -> Puzzle:
    """Cut a picture into shuffled pieces, each turned at random, that lost `erode` pixels all around.

    `size` is how many pixels a piece measures across (a strip: its width), for which the picture is resized; without
    it the picture keeps its pixels, or is enlarged to the usual size. The truth is in pixels of the resized picture,
    whose top left corner is the origin.
    """
    picture = _resized(picture, shape, pieces, size)
    height, width = picture.shape[-2:]
    outlines = sheet_outlines(shape, pieces, width, height, generator)
    kept = surviving(len(outlines), missing, generator)
    angles = torch.rand(len(kept), generator=generator) * (2 * math.pi if turn else 0.0)
    cuts = [_piece(picture, outlines[i], angle, erode) for i, angle in zip(kept.tolist(), angles.tolist(), strict=True)]
    textures, rotations, translations = zip(*cuts, strict=True)
    made = outline_pieces(textures)
    rotation = torch.tensor(np.stack(rotations)).float()
    origins = (rotation @ made.origins[:, :, None])[..., 0]
    truth = Poses(rotation, torch.tensor(np.stack(translations)).float() + origins)
    names = tuple(f"piece_{index:03d}.png" for index in range(len(cuts)))
    return Puzzle(made, None, names, truth)


def _resized(picture: Float[Tensor, "3 H W"], shape: str, pieces: int, size: int | None) -> Float[Tensor, "3 h w"]:
    """The picture with as many pixels as pieces of that size need, in 8 bits, as files have it."""
    height, width = picture.shape[-2:]
    natural = width / pieces if shape == "strips" else math.sqrt(width * height / pieces)
    if natural < CUT.fewest:
        raise InputError(
            f"a {width}x{height} picture cut into {pieces} {shape} leaves pieces of under {CUT.fewest} pixels; "
            "use a larger picture or fewer pieces"
        )
    wanted = max(natural, USUAL_SIZE[shape]) if size is None else size
    grown = round(height * wanted / natural), round(width * wanted / natural)
    if wanted < CUT.smallest or grown[0] * grown[1] > MOST_PIXELS:
        raise InputError(
            f"a piece size of {wanted:g} pixels is out of range; give {CUT.smallest} or more, "
            f"and for all pieces together at most {MOST_PIXELS // 10**6} megapixels"
        )
    if wanted != natural:
        picture = F.interpolate(picture[None], grown, mode="bicubic", antialias=True)[0]
    return (picture.clamp(0, 1) * 255).round() / 255


def _piece(
    picture: Float[Tensor, "3 H W"], outline: Outline, angle: float, erode: int
) -> tuple[UInt8[Tensor, "4 h w"], Float[np.ndarray, "2 2"], Float[np.ndarray, "2"]]:
    """The picture of a piece, turned back by an angle, and the motion from there, top left corner at the origin, to the
    whole."""
    cosine, sine = math.cos(angle), math.sin(angle)
    rotation = np.array([[cosine, -sine], [sine, cosine]])
    edge = outline.edge @ rotation
    corner = np.floor(edge.min(0)) - CUT.margin
    width, height = (np.ceil(edge.max(0)) + CUT.margin - corner).astype(int).tolist()
    alpha = coverage(edge - corner, height, width).clip(0, 1)
    printed = alpha if outline.printed is None else coverage(outline.printed @ rotation - corner, height, width)
    if erode > 0:
        alpha = _eroded(alpha, edge - corner, erode)
    levels = np.zeros((4, height, width))
    levels[3] = (alpha * 255).round()
    rows, cols = inside = np.nonzero(levels[3])
    colours = _sampled(picture, (np.stack([cols, rows], 1) + 0.5 + corner) @ rotation.T)
    # Colours are those of what is there, whatever its share of the pixel; beyond the edge there is nothing.
    share = (printed[inside] / alpha[inside]).clip(0, 1)
    levels[:3, rows, cols] = ((CUT.core + (colours - CUT.core) * share).clip(0, 1) * 255).round()
    return torch.from_numpy(levels.astype(np.uint8)), rotation, rotation @ corner


def _sampled(picture: Float[Tensor, "3 H W"], places: Float[np.ndarray, "m 2"]) -> Float[np.ndarray, "3 m"]:
    """The picture's colours at places between its pixels."""
    size = np.array([picture.shape[2], picture.shape[1]])
    low = np.floor(places.min(0) - 3).clip(0, size - 1).astype(int)
    high = np.ceil(places.max(0) + 3).clip(low + 1, size).astype(int)
    part = picture[:, low[1] : high[1], low[0] : high[0]]
    grid = torch.from_numpy(2 * (places - low) / (high - low) - 1).float()
    return F.grid_sample(part[None], grid[None, None], "bicubic", "border", align_corners=False)[0, :, 0].numpy()


def _eroded(alpha: Float[np.ndarray, "h w"], edge: Float[np.ndarray, "c 2"], lost: int) -> Float[np.ndarray, "h w"]:
    """The same mask without what is nearer than that to its edge."""
    fine = resample(edge, math.ceil(2 * perimeter(edge)))
    rows, cols = np.nonzero(alpha)
    far, _ = cKDTree(fine).query(np.stack([cols, rows], 1) + 0.5, distance_upper_bound=lost + 1)
    worn = alpha.copy()
    worn[rows, cols] = np.minimum(alpha[rows, cols], (far - lost + 0.5).clip(0, 1))
    parts, count = label(worn > 0.5)
    if count == 0:
        raise InputError(f"{lost} pixels lost all around leave nothing of a piece; use less erosion or larger pieces")
    # What breaks off at a thin place is lost.
    largest = np.bincount(parts.ravel())[1:].argmax() + 1
    return np.where((parts == largest) | (worn <= 0.5), worn, 0.0)


def check_cut(shape: str, pieces: int, missing: float, erode: int) -> None:
    """Refuse wishes that no picture could fulfil."""
    if shape not in SHAPES:
        raise InputError(f"no shape '{shape}'; use one of: {', '.join(SHAPES)}")
    if not 2 <= pieces <= LIMITS.outlines:
        raise InputError(f"{pieces} pieces make no puzzle; give 2 to {LIMITS.outlines}")
    if not 0 <= missing < 1:
        raise InputError(f"missing share {missing} is not at least 0 and under 1; 0.3 takes 30 % of the pieces away")
    if erode < 0:
        raise InputError(f"cannot erode {erode} pixels; give 0 or more")


def cut_shape(
    path: Path | str,
    shape: str,
    pieces: int,
    seed: int = 0,
    size: int | None = None,
    missing: float = 0.0,
    erode: int | None = None,
    turn: bool = True,
) -> Puzzle:
    """Cut a picture file into shuffled pieces, turned by any angles: "tabs", "torn", "shards" or "strips".

    There are as many pieces as asked for; of tabs about as many, since they form a lattice. Pieces measure as many
    pixels as the picture gives them, though not very few, or `size` across; they lose `erode` of them all around (if it
    is not given, shards 2); `missing` is the share of pieces taken away. The same seed gives the same puzzle.
    """
    erode = USUAL_EROSION.get(shape, 0) if erode is None else erode
    check_cut(shape, pieces, missing, erode)
    check_seed(seed)
    picture, generator = read_picture(path), torch.Generator().manual_seed(seed)
    try:
        return cut_shapes(picture, shape, pieces, generator, size=size, missing=missing, erode=erode, turn=turn)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
