"""What a file or folder holds: the one place that decides how an input is read, and of which kind its pieces are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from diffassemble.assembly.kind import OpenOptions
from diffassemble.core import InputError
from diffassemble.io.archives import is_zip
from diffassemble.io.documents import ASSEMBLY_FILES, DOCUMENTS, read_document
from diffassemble.io.meshes import MESH_ENDINGS
from diffassemble.io.pictures import has_alpha, is_picture, is_see_through, picture_size
from diffassemble.io.reading import check_name, reason

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
_LOOKED_AT = 6
"""pictures of a folder that are looked at to find out what all are"""


@dataclass(frozen=True)
class Input:
    """What a path holds.

    `files` are the pictures or meshes in their order. `beside` has one file for each of them: the masks of pictures
    with masks, the colours of photographed silhouettes; it is empty where there are none. The kind of the pieces in an
    archive is known once it is unpacked: until then it is empty.
    """

    path: Path
    form: Form
    kind: str
    files: tuple[Path, ...] = ()
    beside: tuple[Path, ...] = ()


def detect(path: Path, options: OpenOptions | None = None) -> Input:
    """What a file or folder holds; `options.kind`, `board`, `photographed` and `more` decide where they are given.

    Args:
        path: a zip file, a puzzle folder, a folder of meshes or pictures, or a picture.
        options: what the caller knows already; see `OpenOptions`.

    Example:
        >>> detect(Path("table.jpg")).form
        'photograph of squares'
    """
    options = options or OpenOptions()
    for one in (path, *options.more, *filter(None, (options.colours,))):
        _check_there(one)
    if is_zip(path):
        return Input(path, "archive", "")
    if path.is_dir() and not options.more:
        if (path / "puzzle.json").exists():
            return Input(path, "puzzle folder", _kind_of(path / "puzzle.json"))
        if (path / "assembly.json").exists() and {entry.name for entry in path.iterdir()} <= set(ASSEMBLY_FILES):
            return Input(path, "assembly", _kind_of(path / "assembly.json"))
        meshes = _files_in(path, MESH_ENDINGS)
        free = options.board is None and not options.photographed
        if options.kind == "fragments" or (options.kind is None and free and meshes):
            return Input(path, "meshes", "fragments", tuple(meshes))
    found = _pictures(path, options)
    if options.more and found.kind != "outlines":
        raise InputError(f"{options.more[0]}: several files are photos of pieces that lie apart; else give one folder")
    return found


def _kind_of(document: Path) -> str:
    return DOCUMENTS[read_document(document, DOCUMENTS)["kind"]]


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


def _pictures(path: Path, options: OpenOptions) -> Input:
    """What pictures show: pieces of any outline, or pieces of a grid."""
    kind, gridless, folder = options.kind, options.board is None, path.is_dir() and not options.more
    if kind == "fragments":
        return Input(path, "meshes", "fragments")
    files = _files_in(path) if folder else [path]
    if kind != "outlines" and len(files) == 1 and not options.more and options.colours is None:
        told = kind == "squares" and (options.photographed or (gridless and not folder))
        on_grid = kind is None and options.photographed and not gridless and not folder
        if told or on_grid or (kind is None and gridless and is_picture(files[0]) and _show_squares(files[0])):
            return Input(files[0], "photograph of squares", "squares", tuple(files))
    if kind == "outlines" or (kind is None and (options.photographed or (gridless and _are_outlines(path, options)))):
        return _outlines(path, options)
    return Input(path, "equal pictures" if folder else "shuffled grid", "squares", tuple(files))


def _are_outlines(path: Path, options: OpenOptions) -> bool:
    """Whether pictures show pieces of any outline: cut-outs, pictures with masks, or photographs of loose pieces.

    Equal pictures that are opaque and show nothing that lies apart are square pieces.
    """
    if options.more or options.colours is not None:
        return True
    if not path.is_dir():
        return is_picture(path)
    pictures = pictures_in(path)
    if _masked(path, pictures) is not None or any(map(is_see_through, pictures)):
        return True
    return _show_pieces(pictures) if pictures else _home(path) != path


def _show_squares(picture: Path) -> bool:
    from diffassemble.io.photo.pieces import shows_squares

    return shows_squares(picture)


def _show_pieces(pictures: Sequence[Path]) -> bool:
    """Whether pictures, of which some are looked at, all show things that lie apart on a background."""
    from diffassemble.io.photo.pieces import shows_pieces

    cropped = len({picture_size(picture) for picture in pictures}) > 1
    step = max(1, len(pictures) // _LOOKED_AT)
    return all(shows_pieces(picture, cropped) for picture in pictures[::step])


def _outlines(path: Path, options: OpenOptions) -> Input:
    """Pictures of pieces of any outline: cut-outs, pictures with masks, or photographs."""
    if path.is_dir() and not options.more:
        pictures = pictures_in(path)
        if (masked := _masked(path, pictures)) is not None:
            return Input(path, "pictures with masks", "outlines", *map(tuple, masked))
        pictures = pictures or pictures_in(_home(path))
        if not pictures:
            raise InputError(f"{path}: has no pictures; give photos, cut-outs with alpha, or pictures and masks")
    else:
        pictures = [path, *options.more]
        for file in pictures:
            if file.is_dir():
                raise InputError(f"{file}: is a folder; give either one folder or several photos")
    if len(pictures) > 1 and any(has_alpha(file) and is_see_through(file) for file in pictures):
        return Input(path, "cut-outs", "outlines", tuple(pictures))
    return Input(path, "photographs", "outlines", tuple(pictures), _colours_of(pictures, options.colours))


def _home(folder: Path) -> Path:
    """Where the pictures of a folder without any are: in its folder of silhouettes, or else in that of colours."""
    inner = (folder / name for name in (_SILHOUETTES, *_COLOURS))
    return next((home for home in inner if home.is_dir() and pictures_in(home)), folder)


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


def _files_in(folder: Path, endings: frozenset[str] | None = None) -> list[Path]:
    """The pictures of a folder, or the files of these endings, in the order of their names; hidden ones are ignored."""
    try:
        found = sorted(folder.iterdir())
        if endings is None:
            return [file for file in found if is_picture(file)]
        return [file for file in found if file.suffix.lower() in endings and file.name[0] != "." and file.is_file()]
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from error


def pictures_in(folder: Path) -> list[Path]:
    """The pictures of a folder in the order of their names, without the masks of others."""
    found = _files_in(folder)
    names = {file.stem for file in found}
    return [file for file in found if not _is_mask(file, names)]


def _is_mask(file: Path, names: set[str]) -> bool:
    """Whether a file is the mask of a picture beside it."""
    return file.stem.endswith(_MASK_ENDING) and file.stem.removesuffix(_MASK_ENDING) in names


def _masked(folder: Path, pictures: Sequence[Path]) -> tuple[Sequence[Path], list[Path]] | None:
    """The pictures and masks of a folder, if it has masks: twins named X_mask.png, or a folder `masks` of equal names.

    The pictures are beside `masks`, or in the one other folder there.
    """
    if (folder / _MASKS).is_dir():
        others = [inner for inner in sorted(folder.iterdir()) if inner.is_dir() and inner.name != _MASKS]
        if not pictures and len(others) == 1:
            pictures = pictures_in(others[0])
        masks = {file.stem.removesuffix(_MASK_ENDING): file for file in pictures_in(folder / _MASKS)}
    else:
        names = {file.stem for file in pictures}
        masks = {file.stem.removesuffix(_MASK_ENDING): file for file in _files_in(folder) if _is_mask(file, names)}
    if not pictures or not masks:
        return None
    for picture in pictures:
        if picture.stem not in masks:
            raise InputError(f"{picture}: has no mask, though others have; add {picture.stem}.png to the masks")
    return pictures, [masks[picture.stem] for picture in pictures]
