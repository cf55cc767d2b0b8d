"""Any folder of pictures."""

from __future__ import annotations

from pathlib import Path

from diffassemble.puzzle import InputError

PICTURE_ENDINGS = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})


def picture_paths(folder: Path) -> list[Path]:
    """All pictures in a folder and the folders below it, sorted by path; hidden files are passed over."""
    if not folder.exists():
        raise InputError(f"{folder} does not exist; pass a folder of pictures")
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; pass the folder that holds the pictures")
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in PICTURE_ENDINGS and not path.name.startswith(".") and path.is_file()
    )
    if not found:
        known = " ".join(sorted(PICTURE_ENDINGS))
        raise InputError(f"{folder} holds no pictures; pass a folder with files ending in {known}")
    return found
