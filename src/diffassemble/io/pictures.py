"""Pictures in and out: any common file becomes colours in [0, 1], and colours become PNG."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngInfo
from torch import Tensor

from diffassemble.core import InputError
from diffassemble.core.limits import LIMITS, check_memory
from diffassemble.io.atomic import write_file
from diffassemble.io.reading import opened, reason

MOST_PIXELS = LIMITS.picture_pixels
"""just under Pillow's own limit, so that the answer is the same whichever check comes first"""
MADE_BY = "diffassemble"
"""the software that pictures of this program name"""
PICTURE_ENDINGS = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})
_FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF", "PPM")
_Seen = TypeVar("_Seen")


def is_picture(path: Path) -> bool:
    """Whether a file is a picture by its name; hidden ones are ignored."""
    return path.suffix.lower() in PICTURE_ENDINGS and not path.name.startswith(".") and path.is_file()


def read_picture(path: Path | str) -> Float[Tensor, "3 H W"]:
    """Colours of a picture file, upright by its EXIF orientation; transparent parts become white."""
    path = Path(path)
    levels, white = _decoded(path, _levels, bytes_each=18)
    if levels.dtype != np.uint8 and not ((levels >= 0) & (levels <= white)).all():
        raise InputError(f"{path}: has colours outside 0…{white}; save it as 8 or 16 bit")
    planes = np.moveaxis(levels, -1, 0) if levels.ndim == 3 else levels[None]
    return torch.from_numpy(planes.astype(np.float32, order="C")).div_(white).expand(3, -1, -1).contiguous()


def read_cutout(path: Path | str) -> UInt8[Tensor, "4 H W"]:
    """sRGB levels and alpha of a picture file, upright by its EXIF orientation; opaque where it has no alpha."""
    levels = _decoded(Path(path), lambda image: np.array(image.convert("RGBA")))
    return torch.from_numpy(levels).movedim(-1, 0).contiguous()


def is_see_through(path: Path | str) -> bool:
    """Whether a picture file has an alpha channel that is not opaque everywhere."""
    return has_alpha(path) and bool((read_cutout(path)[3] < 255).any())


def has_alpha(path: Path | str) -> bool:
    """Whether the head of a picture file announces transparency."""
    with _opened(Path(path)) as image:
        return image.has_transparency_data


def _decoded(path: Path, convert: Callable[[Image.Image], _Seen], bytes_each: int = 12) -> _Seen:
    """The upright image of a file, converted, which takes so many bytes of memory a pixel."""
    with _opened(path) as image:
        check_memory(bytes_each * image.width * image.height, f"{path}: the picture", "make it smaller first")
        try:
            ImageOps.exif_transpose(image, in_place=True)
            return convert(image)
        # Decoders fail on broken files in every way there is, not only with OSError.
        except Exception as error:
            raise InputError(f"{path}: the picture is broken or cut short ({reason(error)})") from error


def picture_size(path: Path | str) -> tuple[int, int]:
    """Width and height by the file's head, without decoding."""
    with _opened(Path(path)) as image:
        return image.size


def write_picture(picture: Float[Tensor, "3 H W"], path: Path | str) -> None:
    """Write colours as an 8-bit PNG; an older file of that name is replaced in one go."""
    write_file(Path(path), png_bytes(to_image(picture)))


def to_levels(colours: Float[Tensor, "*shape"]) -> UInt8[Tensor, "*shape"]:
    """Colours in [0, 1] as 8-bit levels; exact for colours that came from 8-bit files."""
    return (colours.clamp(0, 1) * 255).round().to(torch.uint8)


def to_image(picture: Float[Tensor, "3 H W"]) -> Image.Image:
    """The same picture as a Pillow image."""
    return Image.fromarray(to_levels(picture).movedim(0, -1).contiguous().cpu().numpy())


def png_bytes(image: Image.Image) -> bytes:
    """The image as the content of a PNG file."""
    buffer, info = io.BytesIO(), PngInfo()
    info.add_text("Software", MADE_BY)
    image.save(buffer, "PNG", pnginfo=info)
    return buffer.getvalue()


def is_our_picture(content: bytes) -> bool:
    """Whether a file's content is a PNG picture that this program wrote."""
    return content.startswith(b"\x89PNG") and f"Software\0{MADE_BY}".encode() in content


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """The image with its head read and its size checked, not yet decoded."""
    large = f"{path}: has more than {MOST_PIXELS // 10**6} megapixels; make it smaller first"
    with warnings.catch_warnings(), opened(path, "picture", LIMITS.picture_bytes) as file:
        warnings.simplefilter("ignore")
        try:
            image = Image.open(file, formats=_FORMATS)
        except Image.DecompressionBombError as error:
            raise InputError(large) from error
        except Exception as error:
            raise InputError(f"{path}: is not a picture; give a PNG, JPEG, WebP or TIFF file") from error
        with image:
            if not 0 < image.width * image.height <= MOST_PIXELS:
                raise InputError(large)
            size = os.fstat(file.fileno()).st_size
            # No format packs more than 10,000 pixels into a byte.
            if image.width * image.height > 16_000_000 + 10_000 * size:
                found = f"{image.width}x{image.height} pixels, but the file has {size} bytes"
                raise InputError(f"{path}: claims {found}; it is broken, save it anew")
            yield image


def _levels(image: Image.Image) -> tuple[np.ndarray, int]:
    """Grey (H, W) or colour (H, W, 3) levels, and the level that means white."""
    if image.mode == "F":
        return np.asarray(image), 1
    if image.mode.startswith("I"):
        return np.asarray(image), 65535
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return np.asarray(image if image.mode == "RGB" else image.convert("RGB")), 255
