"""Shredded pages made by code, to learn from and to calibrate by: text, tables, signatures, stamps and pictures.

    python benchmarks/shredded_pages.py OUT [--pages 1] [--seed 0] [--pictures FOLDER]
    diffassemble train strips --data.folders OUT

writes a folder for each page: its strips, listed from the left as 00.png, 01.png, …, some of them upside down, and
where they belong in truth.csv. `diffassemble solve OUT/0000` puts one together; the task `strips` learns from many.

Pages look scanned, are cut along curves that wave and slant, lose a pixel or two at every cut and fray; strips lie
askew or upside down on a background, and part of them may be scanned in a second batch that is cut off elsewhere.
Letters are those that come with matplotlib and PIL. Lengths are pixels.
"""

from __future__ import annotations

import argparse
import io
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

from diffassemble.core import OutlinePieces
from diffassemble.core.contours import outline_pieces

Random = np.random.Generator


class ShreddedPage(NamedTuple):
    """Strips as they came out of the scanner: `position` counts from the left, `turned` are upside down."""

    pieces: OutlinePieces
    position: np.ndarray
    turned: np.ndarray


def make_shredded_page(rng: Random, pictures: tuple[Path, ...] = ()) -> ShreddedPage:
    """A page made and shredded; one in six is a picture instead, if there are any."""
    height = int(rng.integers(500, 1200))
    if pictures and rng.random() < 1 / 6:
        page = _photograph(pictures[rng.integers(len(pictures))], height, height * 3 // 4)
    else:
        page = _scanned(_written(rng, height, int(height * rng.uniform(0.6, 0.85)), pictures), rng)
    return _shred(page, rng)


@cache
def _font(name: str, size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    if not name:
        return ImageFont.load_default(size)
    import matplotlib

    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{name}.ttf"), size)


_FONTS = (
    *("", "DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSerif", "DejaVuSerif-Bold"),
    *("DejaVuSerif-Italic", "STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic", "cmr10", "cmtt10", "cmss10", "cmb10"),
)
_SYLLABLES = (
    "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they"
)
_SYLLABLES += (
    " ing tion er ment con pro dis com ver al ic ous ty ly est ist or der able pre sub inter form port ward man"
)


def _words(rng: Random, count: int) -> str:
    parts = _SYLLABLES.split()
    words = []
    for _ in range(count):
        word = "".join(rng.choice(parts, rng.integers(1, 4)))
        kind = rng.random()
        if kind < 0.08:
            word = str(rng.integers(1, 99999))
        elif kind < 0.2:
            word = word.capitalize()
        words.append(word + str(rng.choice(["", "", "", "", ",", "."])))
    line = " ".join(words)
    return line.upper() if rng.random() < 0.1 else line


def _written(rng: Random, height: int, width: int, pictures: tuple[Path, ...]) -> UInt8[np.ndarray, "h w 3"]:
    """A page of paragraphs, headings, tables, rules, signatures, stamps and small pictures, dark on white."""
    page = Image.new("RGB", (width, height), (255, 255, 255))
    pen = ImageDraw.Draw(page)
    family, size = str(rng.choice(_FONTS)), int(rng.integers(10, 22))
    spacing = size * rng.choice([1.15, 1.3, 1.6, 2.2])
    left, right = width * rng.uniform(0.02, 0.14), width * rng.uniform(0.86, 0.99)
    if rng.random() < 0.3:
        for x in left - rng.uniform(4, 14) + np.arange(rng.integers(1, 3)) * 3:
            pen.line([(x, 0.04 * height), (x + rng.normal(0, 3), 0.97 * height)], fill=(60, 60, 60), width=1)
    y = height * rng.uniform(0.01, 0.12)
    while y < height * 0.95:
        kind = rng.random()
        ink = (int(rng.integers(0, 90)),) * 3
        if kind < 0.5:
            indent = rng.choice([0, 0, 0.1, 0.45]) * width
            for _ in range(rng.integers(1, 9)):
                end = right if rng.random() < 0.8 else rng.uniform(left + indent, right)
                _line(pen, (left + indent, y), end, _words(rng, 30), _font(family, size), ink)
                y += spacing
        elif kind < 0.62:
            heading = _font(str(rng.choice(_FONTS)), int(size * rng.uniform(1, 1.8)))
            _line(pen, (rng.uniform(left, width / 2), y), right, _words(rng, int(rng.integers(1, 6))), heading, ink)
            y += spacing * 1.8
        elif kind < 0.7:
            y = _table(pen, rng, (left, y), right, _font(family, size), spacing)
        elif kind < 0.76:
            start = rng.uniform(left, width * 0.7)
            pen.line([(start, y), (rng.uniform(start, right), y)], fill=ink, width=int(rng.integers(1, 3)))
            y += spacing
        elif kind < 0.82:
            steps = np.cumsum(rng.normal((3, 0), (7, 9), (60, 2)), 0)
            steps += np.array([rng.uniform(left, width * 0.7), y + size])
            pen.line([tuple(point) for point in ndimage.gaussian_filter1d(steps, 1.5, axis=0)], fill=ink, width=1)
            y += 3 * spacing
        elif kind < 0.86:
            stamp = Image.new("L", (int(10 * size), int(3 * size)), 0)
            ImageDraw.Draw(stamp).text((4, 2), _words(rng, 2), fill=200, font=_font("", int(size * 1.5)))
            stamp = stamp.rotate(rng.uniform(-12, 12), expand=True)
            page.paste(ink, (int(rng.uniform(left, width * 0.7)), int(y)), stamp)
            y += spacing
        elif kind < 0.89 and pictures:
            side = int(rng.uniform(0.1, 0.4) * width)
            photo = Image.fromarray(_photograph(pictures[rng.integers(len(pictures))], side, side))
            page.paste(photo.convert("L").convert("RGB"), (int(rng.uniform(0, width - side)), int(y)))
            y += side + spacing
        else:
            y += spacing * rng.uniform(1, 6)
    return np.asarray(page)


def _line(pen: ImageDraw.ImageDraw, start, end: float, words: str, font, ink) -> None:  # type: ignore[no-untyped-def]
    """As many letters as have room."""
    room = max(0, end - start[0])
    while words and pen.textlength(words, font=font) > room:
        words = words[: int(len(words) * min(0.97, room / pen.textlength(words, font=font)))]
    pen.text(start, words, fill=ink, font=font)


def _table(pen, rng: Random, start, right: float, font, spacing: float) -> float:  # type: ignore[no-untyped-def]
    rows, cols = int(rng.integers(2, 7)), int(rng.integers(2, 6))
    xs, (left, y) = np.linspace(start[0], right, cols + 1), start
    ruled = rng.random(2) < 0.7
    for row in range(rows + 1):
        if ruled[0]:
            pen.line([(left, y), (right, y)], fill=(40, 40, 40), width=1)
        if row < rows:
            for x, following in pairwise(xs):
                _line(pen, (x + 3, y + 1), following, _words(rng, 2), font, (40, 40, 40))
            y += spacing
    if ruled[1]:
        for x in xs:
            pen.line([(x, start[1]), (x, y)], fill=(40, 40, 40), width=1)
    return float(y + spacing)


def _photograph(path: Path, height: int, width: int) -> UInt8[np.ndarray, "h w 3"]:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB").resize((width, height), Image.Resampling.BICUBIC))


def _scanned(page: UInt8[np.ndarray, "h w 3"], rng: Random) -> UInt8[np.ndarray, "h w 3"]:
    """Blurred, noisy, on paper that is not quite white, with speckles; the text may lean."""
    levels = page.astype(np.float32)
    if rng.random() < 0.7:
        levels = ndimage.rotate(levels, rng.normal(0, 0.6), reshape=False, order=1, mode="constant", cval=255)
    levels = ndimage.gaussian_filter(levels, (*[rng.uniform(0.3, 0.9)] * 2, 0))
    paper = rng.uniform(205, 255) - rng.uniform(0, 8, 3)
    grain = ndimage.gaussian_filter(rng.normal(0, 1, page.shape[:2]), rng.uniform(0.5, 1.2)) * rng.uniform(1, 10)
    shade = ndimage.zoom(rng.normal(0, rng.uniform(0, 4), (4, 4)), np.array(page.shape[:2]) / 4, order=1)
    levels = levels / 255 * paper + (grain + shade)[..., None]
    speckles = rng.random(page.shape[:2]) < rng.choice([0, 1e-4, 4e-4])
    levels[ndimage.binary_dilation(speckles, iterations=1)] *= 0.7
    return np.clip(levels, 0, 255).astype(np.uint8)


def _noise(rng: Random, count: int, length: float) -> Float[np.ndarray, "{count}"]:
    """Noise of deviation 1 that keeps its sign over about so many pixels."""
    rough = ndimage.gaussian_filter1d(rng.normal(0, 1, count + 200), max(length, 0.3) / 2)[100:-100]
    return rough / max(float(rough.std()), 1e-6)


def _cut_curve(rng: Random, rows: int, waves: float) -> Float[np.ndarray, "{rows}"]:
    """How far a cut strays from its straight course, row by row: bends, and waves that come and go."""
    bends = np.linspace(-1, 1, rows) ** 2 * rng.normal(0, 2)
    where = np.clip(_noise(rng, rows, rng.uniform(60, 250)) + rng.uniform(-1.5, 1), 0, 2)
    return bends + waves * (where * _noise(rng, rows, rng.uniform(12, 40)) + 0.15 * _noise(rng, rows, 5))


def _shred(page: UInt8[np.ndarray, "h w 3"], rng: Random) -> ShreddedPage:
    height, width = page.shape[:2]
    strip = rng.uniform(26, 60)
    count = int(np.clip(width / strip, 5, 22))
    clean = rng.random() < 0.12
    waves = 0.0 if clean else float(rng.choice([0, 0.4, 1, 2, 3]) * rng.uniform(0.7, 1.3))
    lost, fray = (0.0, 0.0) if clean else (rng.uniform(0.3, 2), rng.uniform(0.1, 0.7))
    rows = np.arange(height)
    first = rng.uniform(0, max(1, width - count * strip))
    slant = 0.0 if clean else rng.normal(0, 0.006)
    cuts = [first + k * strip + slant * (rows - height / 2) + _cut_curve(rng, height, waves) for k in range(count + 1)]
    batch = rng.integers(1, count) if rng.random() < 0.35 else count
    trimmed = rng.uniform(0, 0.09) * height * np.array([rng.random() < 0.5, rng.random() < 0.5])
    background, rim = int(rng.choice([0, 0, 0, 20, 255])), 0.0 if clean else rng.uniform(-0.5, 1.2)
    soft, lying = rng.random() < 0.3, 0.0 if clean else rng.uniform(0, 2.5)
    textures, turned = [], rng.integers(0, 2, count)
    for k in range(count):
        ends = (trimmed[0], height - trimmed[1]) if k >= batch else (0.0, float(height))
        ends = (ends[0] + abs(rng.normal(0, 0.7)), ends[1] - abs(rng.normal(0, 0.7)))
        sides = [
            cuts[k + side]
            + (1 - 2 * side) * np.abs(lost * rng.uniform(0.6, 1.4) + fray * _noise(rng, height, rng.choice([1, 2, 4])))
            for side in range(2)
        ]
        texture = _lay(page, sides, ends, np.radians(rng.normal(0, lying)), background, rim, soft)
        colours = Image.fromarray(texture[..., :3])
        if not clean:
            packed = io.BytesIO()
            colours.save(packed, "JPEG", quality=int(rng.integers(75, 95)))
            colours = Image.open(packed)
        texture = np.dstack([np.asarray(colours), texture[..., 3]])
        textures.append(np.rot90(texture, 2 * turned[k]))
    order = rng.permutation(count)
    pieces = outline_pieces([torch.from_numpy(textures[k].transpose(2, 0, 1).copy()) for k in order])
    return ShreddedPage(pieces, order, turned[order])


def _lay(page, sides, ends, angle: float, background: int, rim: float, soft: bool):  # type: ignore[no-untyped-def]
    """One strip scanned askew on a background, with its mask, which is too large by `rim`."""
    height = page.shape[0]
    middle = np.array([(sides[0].mean() + sides[1].mean()) / 2, height / 2])
    half = (np.ptp(np.concatenate(sides)) + abs(np.sin(angle)) * height) / 2 + 6
    y, x = np.mgrid[-height // 2 - 4 : height // 2 + 4, -int(half) : int(half) + 1].astype(np.float32)
    on_x = np.cos(angle) * x - np.sin(angle) * y + middle[0]
    on_y = np.sin(angle) * x + np.cos(angle) * y + middle[1]
    left, right = (np.interp(on_y, np.arange(height), side) for side in sides)
    inside = np.minimum.reduce([on_x - left, right - on_x, on_y - ends[0], ends[1] - on_y])
    cover = np.clip(inside + 0.5, 0, 1)[..., None]
    shown = np.dstack(
        [
            ndimage.map_coordinates(page[..., c].astype(np.float32), [on_y, on_x], order=1, mode="nearest")
            for c in range(3)
        ]
    )
    alpha = np.clip(inside + rim + 0.5, 0, 1) if soft else inside + rim > 0
    return np.dstack([shown * cover + background * (1 - cover), 255 * alpha]).round().astype(np.uint8)


def main() -> None:
    """Read the options, make pages, and write their strips."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pages", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    pictures = tuple(sorted(options.pictures.iterdir())[:300]) if options.pictures else ()
    for number in range(options.seed, options.seed + options.pages):
        page, folder = make_shredded_page(np.random.default_rng(number), pictures), options.out / f"{number:04d}"
        folder.mkdir(parents=True, exist_ok=True)
        rows = ["id,position,turned"]
        for texture, position, turned in zip(page.pieces.textures, page.position, page.turned, strict=True):
            Image.fromarray(texture.permute(1, 2, 0).numpy()).save(folder / f"{position:02d}.png")
            rows.append(f"{position:02d},{position},{180 * turned}")
        (folder / "truth.csv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
