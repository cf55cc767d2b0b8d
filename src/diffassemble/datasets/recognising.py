"""What a folder holds: pictures to cut, or objects that are broken already."""

from __future__ import annotations

import os
from pathlib import Path


def holds_fractures(folder: Path) -> bool:
    """Whether a folder is (part of) Breaking Bad, packed or as published; a folder that isn't there holds nothing.

    Known by its list of splits, or by any .npz file or piece of a fracture in the folder or below it.
    """
    if (folder / "val_objects.txt").is_file() or (folder / "data_split").is_dir():
        return True
    return any(_fracture_file(name) for _, _, names in os.walk(folder) for name in names)


def _fracture_file(name: str) -> bool:
    return not name.startswith(".") and (name.endswith(".npz") or (name.startswith("piece_") and name.endswith(".obj")))
