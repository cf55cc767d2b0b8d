"""Every kind of picture file becomes the same colours, and what is no picture is refused."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import tifffile
import torch
from PIL import Image, ImageFile
from torch import Tensor

from diffassemble.core import InputError
from diffassemble.io.pictures import MOST_PIXELS, picture_size, read_picture, to_image, to_levels, write_picture


def png_file(width: int, height: int, depth: int, colour: int, data: bytes) -> bytes:
    """A PNG file made by hand, since Pillow writes no 16-bit colours."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    body = zlib.compress(data)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def same(first: Tensor, second: Tensor, levels: float = 0.0) -> bool:
    return first.shape == second.shape and float((first - second).abs().max()) <= levels / 255


def refused(path: Path, *words: str) -> None:
    """The file is refused by one line that names it."""
    with pytest.raises(InputError) as caught:
        read_picture(path)
    line = str(caught.value)
    assert line.startswith(str(path))
    assert "\n" not in line
    assert all(word in line for word in words), line


def test_png_round_trip_is_exact(picture: Tensor, tmp_path: Path) -> None:
    write_picture(picture, tmp_path / "a.png")
    assert torch.equal(read_picture(tmp_path / "a.png"), picture)
    assert picture_size(tmp_path / "a.png") == (32, 24)
    # What is in the file counts, not its name.
    (tmp_path / "a.png").rename(tmp_path / "a.jpg")
    assert torch.equal(read_picture(tmp_path / "a.jpg"), picture)
    assert torch.equal(to_levels(torch.arange(256) / 255), torch.arange(256, dtype=torch.uint8))
    assert to_levels(torch.tensor([-0.5, 1.5])).tolist() == [0, 255]


def test_formats_with_and_without_loss(picture: Tensor, tmp_path: Path) -> None:
    for name in ("a.png", "a.tif", "a.bmp", "a.ppm", "a.PNG", "a.webp"):
        to_image(picture).save(tmp_path / name, lossless=True)
        assert torch.equal(read_picture(tmp_path / name), picture)
    smooth = torch.stack(torch.meshgrid(torch.linspace(0, 1, 48), torch.linspace(0, 1, 64), indexing="ij"))
    colours = torch.cat([smooth, smooth.mean(0, keepdim=True)])
    for name in ("a.jpg", "a.webp"):
        to_image(colours).save(tmp_path / name, quality=95)
        assert same(read_picture(tmp_path / name), colours, levels=12)


@pytest.mark.parametrize("mode", ["L", "1", "P"])
def test_grey_and_palettes_become_three_channels(picture: Tensor, tmp_path: Path, mode: str) -> None:
    image = to_image(picture).convert(mode)
    image.save(tmp_path / "a.png")
    expected = torch.from_numpy(np.array(image.convert("RGB"))).movedim(-1, 0).float() / 255
    assert torch.equal(read_picture(tmp_path / "a.png"), expected)


def test_see_through_parts_lie_on_white(tmp_path: Path) -> None:
    levels = np.zeros((4, 6, 4), np.uint8)
    levels[..., 0], levels[:, :2, 3], levels[:, 2:4, 3] = 200, 255, 128
    Image.fromarray(levels).save(tmp_path / "a.png")
    colours = read_picture(tmp_path / "a.png") * 255
    assert colours[:, 0, 0].tolist() == pytest.approx([200, 0, 0])
    assert colours[:, 0, 2].tolist() == pytest.approx([227, 127, 127], abs=1)
    assert colours[:, 0, 5].tolist() == pytest.approx([255, 255, 255])
    image = Image.new("P", (4, 4), 0)
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putpixel((1, 1), 1)
    image.save(tmp_path / "palette.png", transparency=0)
    colours = read_picture(tmp_path / "palette.png") * 255
    assert colours[:, 0, 0].tolist() == pytest.approx([255] * 3)
    assert colours[:, 1, 1].tolist() == pytest.approx([40, 50, 60])
    Image.new("LA", (4, 4), (7, 0)).save(tmp_path / "grey.png")
    assert read_picture(tmp_path / "grey.png").min() == 1


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_deep_colours_keep_their_depth(tmp_path: Path, name: str) -> None:
    grey = np.linspace(0, 65535, 24 * 32).astype(np.uint16).reshape(24, 32)
    Image.fromarray(grey).save(tmp_path / name)
    tifffile.imwrite(tmp_path / "big-endian.tif", grey, byteorder=">")
    for file in (name, "big-endian.tif"):
        expected = torch.from_numpy(grey.astype(np.float32) / 65535).repeat(3, 1, 1)
        assert torch.allclose(read_picture(tmp_path / file), expected)
    levels = np.random.default_rng(0).integers(0, 65536, (8, 6, 3), dtype=np.uint16)
    if name == "a.tif":
        tifffile.imwrite(tmp_path / name, levels, photometric="rgb")
    else:
        rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in levels)
        (tmp_path / name).write_bytes(png_file(6, 8, 16, 2, rows))
    expected = torch.from_numpy(levels.astype(np.float32) / 65535).movedim(-1, 0)
    assert same(read_picture(tmp_path / name), expected, levels=1.01)


def test_floating_point_grey(tmp_path: Path) -> None:
    levels = np.linspace(0, 1, 48, dtype=np.float32).reshape(6, 8)
    Image.fromarray(levels).save(tmp_path / "a.tif")
    assert torch.allclose(read_picture(tmp_path / "a.tif")[1], torch.from_numpy(levels))
    Image.fromarray(levels * 300).save(tmp_path / "b.tif")
    refused(tmp_path / "b.tif", "has colours outside")


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.jpg"])
def test_exif_orientation(picture: Tensor, tmp_path: Path, name: str) -> None:
    # What a camera stores so that, once turned as the tag says, the picture is upright again.
    stored = (
        *(picture, picture.flip(-1), picture.flip(-1, -2), picture.flip(-2), picture.mT),
        *(picture.rot90(1, (-2, -1)), picture.flip(-1, -2).mT, picture.rot90(-1, (-2, -1))),
    )
    for orientation, seen in enumerate(stored, 1):
        exif = Image.Exif()
        exif[0x0112] = orientation
        to_image(seen).save(tmp_path / name, exif=exif)
        assert same(read_picture(tmp_path / name), picture, levels=255 if name == "a.jpg" else 0)


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.webp", "a.tif", "a.gif", "a.bmp"])
def test_truncated_files(
    tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    refused(tmp_path / ("long" * 100), "name too long")
    to_image(torch.rand(3, 64, 64, generator=torch.Generator().manual_seed(0))).save(tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    for share in (0.02, 0.5, 0.9):
        (tmp_path / name).write_bytes(whole[: int(len(whole) * share)])
        refused(tmp_path / name)
    assert capfd.readouterr().err == ""
    assert len(recwarn) == 0


def test_decompression_bombs_are_refused_before_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda image: pytest.fail("it was decoded"))
    for side in (13350, 50000):
        assert side**2 > MOST_PIXELS
        (tmp_path / "bomb.png").write_bytes(png_file(side, side, 8, 2, b"\0" * 1000))
        refused(tmp_path / "bomb.png", "megapixels")
