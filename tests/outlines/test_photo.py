"""Photographs of pieces, made by code: what lies in them is found, traced and cut out, and what is wrong is told."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFilter

from diffassemble.core import InputError, Puzzle
from diffassemble.io.photo.outlines import read_photos
from diffassemble.io.photo.segmentation import find_pieces
from diffassemble.io.pictures import read_picture
from diffassemble.io.puzzles import open_input, read_puzzle

Colour = tuple[int, int, int]
Shape = Sequence[tuple[float, float]]


def star(x: float, y: float, number: int, radius: float = 38) -> Shape:
    """An outline that no other number has."""
    chance = np.random.default_rng(number)
    waves = 0.12 * chance.normal(size=4)
    angles = np.linspace(0, 2 * math.pi, 180, endpoint=False)
    reach = radius * (1 + sum(wave * np.cos((k + 2) * angles + number) for k, wave in enumerate(waves)))
    return [(x + r * math.cos(a), y + r * math.sin(a)) for a, r in zip(angles, reach, strict=True)]


def colour_of(number: int) -> Colour:
    red, green, blue = np.random.default_rng(100 + number).integers(0, 256, 3)
    return int(red), int(green), int(blue)


def photograph(
    shapes: Sequence[Shape],
    table: Colour = (120, 130, 120),
    size: tuple[int, int] = (480, 360),
    colour: Callable[[int], Colour] = colour_of,
    shadow: bool = True,
    blur: float = 0.6,
) -> Image.Image:
    """Shapes on a table with light from the left, soft shadows, grain, and a camera that is a little soft."""
    fine = 4
    whole = Image.new("RGB", (size[0] * fine, size[1] * fine), table)
    scaled = [[(x * fine, y * fine) for x, y in shape] for shape in shapes]
    if shadow:
        dark = Image.new("L", whole.size, 0)
        for shape in scaled:
            ImageDraw.Draw(dark).polygon([(x + 5 * fine, y + 6 * fine) for x, y in shape], fill=60)
        dark = dark.filter(ImageFilter.GaussianBlur(5 * fine))
        whole.paste(Image.new("RGB", whole.size), mask=dark)
    for number, shape in enumerate(scaled):
        ImageDraw.Draw(whole).polygon(shape, fill=colour(number))
    seen = np.asarray(whole.resize(size, Image.Resampling.BOX).filter(ImageFilter.GaussianBlur(blur)), float)
    light = 1 - 0.2 * np.arange(size[0])[None, :, None] / size[0]
    noisy = seen * light + np.random.default_rng(0).normal(0, 2, seen.shape)
    return Image.fromarray(noisy.clip(0, 255).round().astype(np.uint8))


def places(count: int = 12) -> list[tuple[float, float]]:
    return [(65 + 116 * (number % 4), 65 + 115 * (number // 4)) for number in range(count)]


def stars(count: int = 12) -> list[Shape]:
    return [star(x, y, number) for number, (x, y) in enumerate(places(count))]


def area(shape: Shape) -> float:
    x, y = np.array(shape).T
    return float(abs((x * np.roll(y, -1) - y * np.roll(x, -1)).sum()) / 2)


def read(*images: Image.Image, folder: Path, colours: Sequence[Image.Image] = ()) -> Puzzle | InputError:
    paths = [folder / f"photo_{number}.png" for number in range(len(images))]
    for path, image in zip(paths, images, strict=True):
        image.save(path)
    others = [folder / f"colour_{number}.png" for number in range(len(colours))]
    for path, image in zip(others, colours, strict=True):
        image.save(path)
    found, shown = read_photos(paths, others or None)
    assert shown.width > 10
    return found


@pytest.mark.parametrize("table", [(120, 130, 120), (245, 245, 240), (20, 20, 24), (60, 90, 150)])
def test_all_pieces_are_found_as_large_as_they_are(table: Colour, tmp_path: Path) -> None:
    def colour(number: int) -> Colour:
        mine = colour_of(number)
        near = sum(abs(one - two) for one, two in zip(mine, table, strict=True)) < 120
        return (255 - mine[0], 255 - mine[1], 255 - mine[2]) if near else mine

    puzzle = read(photograph(stars(), table, colour=colour), folder=tmp_path)
    assert isinstance(puzzle, Puzzle)
    assert puzzle.outlines.areas.tolist() == pytest.approx([area(shape) for shape in stars()], rel=0.05)
    assert puzzle.names[:2] == ("piece_000.png", "piece_001.png")
    assert puzzle.outlines.coloured


def test_outlines_lie_where_the_pieces_lie(tmp_path: Path) -> None:
    photograph(stars()).save(tmp_path / "a.png")
    photo = find_pieces(tmp_path / "a.png", read_picture(tmp_path / "a.png"))
    for (_, outline), shape in zip(photo.outlined, stars(), strict=True):
        off = np.linalg.norm(outline.curve[:, None] - np.array(shape)[None], axis=2).min(1)
        assert off.mean() < 0.9
        alpha = outline.texture[3]
        assert bool(((alpha > 20) & (alpha < 235)).any())  # soft at the border
        colours = outline.texture[:3, alpha == 255].float().mean(1)
        assert bool((outline.texture[:3, alpha == 255].float().std(1) < 25).all())
        assert bool((colours <= 255).all())


def test_large_photos_are_traced_at_full_size(tmp_path: Path) -> None:
    big = [[(5 * x, 5 * y) for x, y in shape] for shape in stars(4)]
    photograph(big, size=(2400, 700), blur=1.5).save(tmp_path / "a.png")
    photo = find_pieces(tmp_path / "a.png", read_picture(tmp_path / "a.png"))
    assert [piece.area for piece in photo.pieces] == pytest.approx([area(shape) for shape in big], rel=0.01)


def test_silhouettes_take_the_colours_of_other_photos(tmp_path: Path) -> None:
    shapes = stars()
    dark = photograph(shapes, (225, 225, 225), colour=lambda number: (8, 8, 8), shadow=False)
    alone = read(dark, folder=tmp_path)
    assert isinstance(alone, Puzzle)
    assert not alone.outlines.coloured
    both = read(dark, folder=tmp_path, colours=[photograph(shapes)])
    assert isinstance(both, Puzzle)
    assert both.outlines.coloured
    assert torch.equal(both.outlines.contours[3], alone.outlines.contours[3])
    light = 1 - 0.2 * places()[3][0] / 480
    inside = both.outlines.textures[3][:3, both.outlines.textures[3][3] == 255].float().mean(1)
    assert inside.tolist() == pytest.approx([light * level for level in colour_of(3)], abs=8)


def test_one_piece_a_photo_keeps_the_photos_name(tmp_path: Path) -> None:
    photos = [photograph([star(100, 90, number, 50)], size=(200, 180)) for number in range(3)]
    puzzle = read(*photos, folder=tmp_path)
    assert isinstance(puzzle, Puzzle)
    assert puzzle.names == ("photo_0.png", "photo_1.png", "photo_2.png")


def box(x: float, y: float, width: float, height: float) -> Shape:
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]


BAD: dict[str, tuple[list[Image.Image], str]] = {
    "nothing": ([photograph([], shadow=False)], "no piece found"),
    "same colour": ([photograph(stars(), colour=lambda number: (120, 130, 120), shadow=False)], "of another colour"),
    "scales": (
        [photograph(stars()), photograph([star(x, y, 40 + n, 26) for n, (x, y) in enumerate(places())])],
        "times as large as those of the other photos",
    ),
    "pattern": (
        [
            Image.fromarray(np.random.default_rng(0).integers(0, 256, (300, 400, 3), dtype=np.uint8)).resize(
                (1600, 1200)
            )
        ],
        "plain background",
    ),
}


SET_ASIDE: dict[str, tuple[list[Shape], int, str]] = {
    "touching": ([*stars(10), star(300, 295, 20), star(366, 295, 21)], 10, "two pieces that touch"),
    "cut off": ([*stars(8)[:4], *stars(8)[5:], star(20, 180, 30)], 7, "is cut off by the edge of the photo"),
    "hand": ([*stars(8), box(0, 275, 400, 85)], 8, "is no piece"),
    "crumb": ([*stars(11), star(413, 295, 3, 14)], 11, "much smaller than the others"),
}


@pytest.mark.parametrize("case", SET_ASIDE)
def test_what_is_no_whole_piece_is_reported_and_set_aside(case: str, tmp_path: Path) -> None:
    shapes, count, words = SET_ASIDE[case]
    with pytest.warns(UserWarning, match=rf"photo_0\.png: the thing at \(\d+, \d+\) .*{words}.*; set aside"):
        puzzle = read(photograph(shapes), folder=tmp_path)
    assert isinstance(puzzle, Puzzle)
    assert len(puzzle) == count


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_told_not_guessed(case: str, tmp_path: Path) -> None:
    photos, words = BAD[case]
    try:
        found = read(*photos, folder=tmp_path)
    except InputError as error:
        found = error
    assert isinstance(found, InputError)
    assert words in str(found)
    assert "\n" not in str(found)


def test_a_blurred_photo_is_told(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"photo_0\.png: blurred"):
        assert isinstance(read(photograph(stars(), blur=6), folder=tmp_path), Puzzle)


def test_photos_are_told_from_square_pieces(tmp_path: Path) -> None:
    """Equal pictures that show pieces on a table are photos; those that are full of picture are pieces."""
    told: list[str] = []
    (tmp_path / "photos").mkdir()
    for number in range(3):
        photograph([star(90, 90, number, 50)], size=(180, 180)).save(tmp_path / "photos" / f"{number}.png")
    assert open_input(tmp_path / "photos", say=told.append).kind == "outlines"
    assert told == ["taken for outlines: 3 pieces in 3 photos"]
    (tmp_path / "squares").mkdir()
    whole = np.asarray(photograph(stars(), size=(480, 360), table=(90, 140, 200)))
    for number in range(12):
        row, column = divmod(number, 4)
        cell = whole[row * 120 : row * 120 + 120, column * 120 : column * 120 + 120]
        Image.fromarray(np.roll(cell, 60, (0, 1))).save(tmp_path / "squares" / f"{number:02d}.png")
    assert open_input(tmp_path / "squares").kind == "squares"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "diffassemble", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def test_the_commands_take_photos(tmp_path: Path) -> None:
    photograph(stars(6), size=(480, 240)).save(tmp_path / "a.png")
    photograph([star(x, y, 50 + n) for n, (x, y) in enumerate(places(4))], size=(480, 140)).save(tmp_path / "b.png")
    made = run("cut", "a.png", "b.png", "--from-photo", "--out", "puzzle", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "puzzle-found.png shows what was found" in made.stdout
    assert "wrote 10 pieces" in made.stdout
    assert read_puzzle(tmp_path / "puzzle").kind == "outlines"
    told = run("solve", "a.png", "b.png", "--solver", "random", "--no-pictures", "--out", "answer", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "taken for outlines: 10 pieces in 2 photos" in told.stdout
    assert (tmp_path / "answer" / "assembly.json").exists()
    photograph([star(165, 65, 1), star(20, 180, 30)]).save(tmp_path / "c.png")
    refused = run("solve", "c.png", "--out", "other", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.startswith("diffassemble: c.png: the thing at (")
    assert (tmp_path / "other-found.png").exists()
    assert not (tmp_path / "other").exists()
