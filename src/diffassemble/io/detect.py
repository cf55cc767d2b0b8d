"""What a file or folder holds: the one place that decides how an input is read, and of which kind its pieces are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from diffassemble.assembly.kind import OpenOptions
from diffassemble.core import InputError
from diffassemble.io.archives import is_zip
from diffassemble.io.documents import ASSEMBLY_FILES, read_document
from diffassemble.io.meshes import MESH_ENDINGS
from diffassemble.io.pictures import PICTURE_ENDINGS, is_picture, is_see_through, picture_size
from diffassemble.io.reading import check_name, files_in, reason

Form = Literal[
    "archive",
    "puzzle folder",
    "assembly",
    "meshes",
    "cut-outs",
    "pictures with masks",
    "photographs",
    "photograph of squares",
    "shuffled grid",
    "equal pictures",
]
_COLOURS, _SILHOUETTES = ("colour", "colours", "color", "colors"), "silhouettes"
"""names of folders that show the colours of pieces, and their outlines alone"""
_MASKS, _MASK_ENDING = "masks", "_mask"


@dataclass(frozen=True)
class Input:
    """What a path holds: the pictures in order, and one mask or photograph of colours `beside` each, if there are any.

    The kind of an archive is empty until it is unpacked.
    """

    path: Path
    form: Form
    kind: str
    files: tuple[Path, ...] = ()
    beside: tuple[Path, ...] = ()


def detect(path: Path, options: OpenOptions | None = None) -> Input:
    """What a file or folder holds; `options.kind`, `board`, `photographed` and `more` decide where they are given."""
    options = options or OpenOptions()
    kind, gridless = options.kind, options.board is None
    for one in (path, *options.more, *filter(None, (options.colours,))):
        _check_there(one)
    folder = path.is_dir() and not options.more
    # 1. What names and documents show.
    if is_zip(path):
        return Input(path, "archive", "")
    if folder and (path / "puzzle.json").exists():
        return Input(path, "puzzle folder", read_document(path / "puzzle.json")["kind"])
    if folder and (path / "assembly.json").exists() and {one.name for one in path.iterdir()} <= set(ASSEMBLY_FILES):
        return Input(path, "assembly", read_document(path / "assembly.json")["kind"])
    free = kind is None and gridless and not options.photographed
    if kind == "fragments" or (folder and free and files_in(path, MESH_ENDINGS)):
        return Input(path, "meshes", "fragments")
    # 2. One photograph of square pieces.
    files = files_in(path, PICTURE_ENDINGS) if folder else [path]
    single = len(files) == 1 and not options.more and options.colours is None
    if single and _is_photo_of_squares(files[0], options, folder):
        return Input(files[0], "photograph of squares", "squares", tuple(files))
    # 3. Pieces of any outline, and else those of a grid.
    outlines = None
    if kind == "outlines" or (kind is None and (options.photographed or gridless)):
        outlines = _outlines(path, options, folder)
    if options.more and outlines is None:
        raise InputError(f"{options.more[0]}: several files are photos of pieces that lie apart; else give one folder")
    if outlines is None and not files:
        raise InputError(f"{path}: has no pictures; give a folder of pictures of equal size")
    return outlines or Input(path, "equal pictures" if folder else "shuffled grid", "squares", tuple(files))


def _check_there(path: Path) -> None:
    """Refuse what is not there or cannot be read, and names that cannot be written into a document."""
    try:
        path.stat()
        path.is_dir() and (path / "puzzle.json").exists()
    except FileNotFoundError as error:
        raise InputError(f"{check_name(path)!s}: there is no such file or folder") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)!a}: cannot be read ({reason(error)})") from error
    check_name(path)


def _is_photo_of_squares(file: Path, options: OpenOptions, in_folder: bool) -> bool:
    """Whether one picture is a photograph of loose square pieces: as options state, or by what it shows."""
    if options.kind == "squares":
        return options.photographed or (options.board is None and not in_folder)
    if options.kind is not None or options.board is not None:
        return options.kind is None and options.photographed and not in_folder
    from diffassemble.io.photo.segmentation import shows_squares

    return is_picture(file) and shows_squares(file)


def _show_pieces(pictures: Sequence[Path], examined: int = 6) -> bool:
    """Whether pictures, of which about `examined` are read, all show things that lie apart on a background."""
    from diffassemble.io.photo.segmentation import shows_pieces

    cropped = len({picture_size(picture) for picture in pictures}) > 1
    return all(shows_pieces(picture, cropped) for picture in pictures[:: max(1, len(pictures) // examined)])


def _outlines(path: Path, options: OpenOptions, folder: bool) -> Input | None:
    """Cut-outs, pictures with masks, or photographs of outlines; nothing for opaque pictures that show none apart."""
    stated = bool(options.kind or options.photographed or options.more or options.colours)
    if not folder:
        if not stated and not is_picture(path):
            return None
        for file in (path, *options.more):
            if file.is_dir():
                raise InputError(f"{file}: is a folder; give either one folder or several photos")
        pictures = [path, *options.more]
    else:
        if (masked := _masked(path)) is not None:
            return Input(path, "pictures with masks", "outlines", *map(tuple, masked))
        pictures = pictures_in(path)
        if not stated and pictures and not any(map(is_see_through, pictures)) and not _show_pieces(pictures):
            return None
        inner = [path / name for name in (_SILHOUETTES, *_COLOURS) if (path / name).is_dir()]
        pictures = pictures or next(filter(None, map(pictures_in, inner)), [])
        if not pictures and not stated:
            return None
        if not pictures:
            raise InputError(f"{path}: has no pictures; give photos, cut-outs with alpha, or pictures and masks")
    if len(pictures) > 1 and any(map(is_see_through, pictures)):
        return Input(path, "cut-outs", "outlines", tuple(pictures))
    return Input(path, "photographs", "outlines", tuple(pictures), _colours_of(pictures, options.colours))


def _colours_of(photos: Sequence[Path], folder: Path | None) -> tuple[Path, ...]:
    """Photographs of the same names that show the colours: in a folder that is given, or beside the silhouettes."""
    home = photos[0].resolve().parent
    beside = [home.parent / name for name in _COLOURS if home.name == _SILHOUETTES and (home.parent / name).is_dir()]
    folder = folder or next(iter(beside), None)
    if folder is None:
        return ()
    named = {file.stem: file for file in pictures_in(folder)}
    for photo in photos:
        if photo.stem not in named:
            raise InputError(f"{folder}: has no picture called {photo.stem}, to show the colours of {photo}")
    return tuple(named[photo.stem] for photo in photos)


def pictures_in(folder: Path) -> list[Path]:
    """The pictures of a folder in the order of their names, without the masks of others."""
    return _pictures_and_masks(folder)[0]


def _pictures_and_masks(folder: Path) -> tuple[list[Path], dict[str, Path]]:
    """The pictures of a folder, and by the name of its picture each mask, which is called NAME_mask."""
    found = files_in(folder, PICTURE_ENDINGS)
    names = {file.stem for file in found}
    named = {file.stem.removesuffix(_MASK_ENDING): file for file in found if file.stem.endswith(_MASK_ENDING)}
    masks = {name: file for name, file in named.items() if name in names}
    return [file for file in found if file not in masks.values()], masks


def _masked(folder: Path) -> tuple[list[Path], list[Path]] | None:
    """Pictures and masks of a folder, if it has any: X_mask.png, or in `masks`, beside one folder of pictures."""
    pictures, masks = _pictures_and_masks(folder)
    if (folder / _MASKS).is_dir():
        others = [inner for inner in sorted(folder.iterdir()) if inner.is_dir() and inner.name != _MASKS]
        if not pictures and len(others) == 1:
            pictures = pictures_in(others[0])
        masks = {file.stem.removesuffix(_MASK_ENDING): file for file in pictures_in(folder / _MASKS)}
    if not pictures or not masks:
        return None
    for picture in pictures:
        if picture.stem not in masks:
            raise InputError(f"{picture}: has no mask, though others have; add {picture.stem}.png to the masks")
    return pictures, [masks[picture.stem] for picture in pictures]
