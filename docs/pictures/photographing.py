"""Make the pictures of the guide's section on photographing pieces: `python docs/pictures/photographing.py`.

A sample picture is cut into jigsaw pieces, laid on a table by code, and read as a user's photograph is.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFilter
from skimage import data

import diffassemble as da
from diffassemble.core import OutlinePieces, Puzzle
from diffassemble.io.photo.outlines import read_photos
from diffassemble.outlines.cut import cut_shapes
from diffassemble.rendering.flat import draw_assembly
from diffassemble.rendering.picture import beside, under_title

HERE = Path(__file__).parent
TABLE = (58, 92, 140)


def cut(picture: np.ndarray, shape: str, pieces: int, seed: int) -> Puzzle:
    """A picture in pieces of about 80 pixels."""
    image = torch.from_numpy(picture).movedim(-1, 0).float() / 255
    return cut_shapes(image, shape, pieces, torch.Generator().manual_seed(seed), size=80)


def laid(pieces: OutlinePieces, columns: int, moved: dict[int, tuple[int, int]]) -> Image.Image:
    """Pieces in rows on a table, some of them moved from their places, with light from the left and soft shadows."""
    images = [Image.fromarray(texture.movedim(0, -1).contiguous().numpy()) for texture in pieces.textures]
    pitch = max(max(image.size) for image in images) + 16
    size = columns * pitch + 30, math.ceil(len(images) / columns) * pitch + 30
    table, shadow = Image.new("RGB", size, TABLE), Image.new("L", size, 0)
    places = []
    for index, image in enumerate(images):
        row, column = divmod(index, columns)
        across, down = moved.get(index, (0, 0))
        places.append((column * pitch + 15 + across, row * pitch + 15 + down))
        shadow.paste(90, (places[-1][0] + 4, places[-1][1] + 5), image.getchannel("A"))
    table.paste(Image.new("RGB", size), mask=shadow.filter(ImageFilter.GaussianBlur(4)))
    for image, place in zip(images, places, strict=True):
        table.paste(image, place, image)
    light = 1 - 0.2 * np.arange(size[0])[None, :, None] / size[0]
    seen = np.asarray(table.filter(ImageFilter.GaussianBlur(0.5)), float) * light
    return Image.fromarray((seen + np.random.default_rng(0).normal(0, 2, seen.shape)).clip(0, 255).astype(np.uint8))


def found(photo: Image.Image) -> Image.Image:
    """What the program finds in a photograph."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "photo.png"
        photo.save(path)
        told, shown = read_photos([path])
    print(told)
    return shown


def save(picture: Image.Image, name: str) -> None:
    """Write a picture of moderate size."""
    picture.thumbnail((1300, 1300), Image.Resampling.LANCZOS)
    picture.convert("P", palette=Image.Palette.ADAPTIVE).save(HERE / name, optimize=True)


def main() -> None:
    """Write photographing.png and box.png."""
    jigsaw = cut(data.astronaut(), "tabs", 12, 1)
    good = laid(jigsaw.outlines, 4, {})
    bad = laid(jigsaw.outlines, 4, {5: (30, 0), 6: (-20, 0), 8: (-58, 0)})
    pictures = [under_title(found(good), "found"), under_title(found(bad), "told: touching, and cut off by the edge")]
    save(beside(under_title(good, "a photo"), pictures[0], pictures[1]), "photographing.png")
    other = cut(data.coffee(), "tabs", 20, 2)
    textures, contours = (
        jigsaw.outlines.textures + other.outlines.textures,
        jigsaw.outlines.contours + other.outlines.contours,
    )
    pieces = OutlinePieces(textures, contours, torch.cat([jigsaw.outlines.origins, other.outlines.origins]))
    order = torch.randperm(len(pieces), generator=torch.Generator().manual_seed(0))
    box = Puzzle(pieces, None, tuple(f"piece_{number:03d}.png" for number in range(len(pieces)))).reordered(order)
    answer = da.solve(box, several=True)
    before = laid(box.outlines, 8, {})
    save(
        beside(under_title(before, "two puzzles in one box"), under_title(draw_assembly(answer), "told apart")),
        "box.png",
    )


if __name__ == "__main__":
    main()
