"""Pieces of any outline in whatever a user may pass: cut-outs, pictures with masks, or photographs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diffassemble.assembly.kind import OpenOptions
from diffassemble.core import InputError, Puzzle
from diffassemble.io import outlines as files
from diffassemble.io.pictures import has_alpha, is_picture, is_see_through, picture_size

# What folders are called that show the colours of what lies in another one, and the shapes alone.
_COLOURS, _SHAPES = ("colour", "colours", "color", "colors"), "silhouettes"
# So many pictures of a folder are looked at to find out what all are.
_LOOKS = 6


def recognises(path: Path, options: OpenOptions) -> bool:
    """Whether pictures show pieces of any outline: cut-outs, pictures with masks, or photographs of what lies apart.

    Equal pictures that are opaque and show nothing lying apart are square pieces, or a shuffled grid if a board is
    told.
    """
    if options.board is not None:
        return False
    if options.more or options.colours is not None:
        return True
    if not path.is_dir():
        return is_picture(path)
    pictures = files.pictures_in(path)
    if files.masks_of(path) is not None or _silhouettes(path, pictures) or any(map(is_see_through, pictures)):
        return True
    return bool(pictures) and _show_pieces(pictures)


def _show_pieces(pictures: Sequence[Path]) -> bool:
    """Whether pictures, of which some are looked at, all show things that lie apart on a background."""
    from diffassemble.io.photo.outlines import shows_pieces

    sizes = {picture_size(picture) for picture in pictures}
    cropped = len(sizes) > 1
    step = max(1, len(pictures) // _LOOKS)
    return all(shows_pieces(picture, cropped) for picture in pictures[::step])


def _silhouettes(folder: Path, pictures: Sequence[Path]) -> bool:
    return not pictures and (folder / _SHAPES).is_dir() and bool(files.pictures_in(folder / _SHAPES))


def read_loose(path: Path, options: OpenOptions) -> Puzzle:
    """The puzzle in a folder or in files of cut-outs, pictures with masks, or photographs."""
    if path.is_dir() and not options.more:
        if (masked := files.masks_of(path)) is not None:
            options.say(f"taken for outlines: {len(masked[0])} pictures with masks")
            return files.read_masked(*masked)
        pictures = files.pictures_in(path)
        if _silhouettes(path, pictures):
            return read_loose(path / _SHAPES, options)
        if not pictures:
            raise InputError(f"{path}: has no pictures; give photos, cut-outs with alpha, or pictures and masks")
    else:
        pictures = [path, *options.more]
        for file in pictures:
            if file.is_dir():
                raise InputError(f"{file}: is a folder; give either one folder or several photos")
    if len(pictures) > 1 and any(has_alpha(file) and is_see_through(file) for file in pictures):
        options.say(f"taken for outlines: {len(pictures)} cut-outs with alpha")
        return files.read_cutouts(pictures)
    return _read_photos(pictures, options)


def _read_photos(photos: Sequence[Path], options: OpenOptions) -> Puzzle:
    from diffassemble.io.photo.outlines import read_photos

    colours = _colours_of(photos, options)
    found, shown = read_photos(photos, colours, options.sheet, options.say)
    options.show(shown)
    if isinstance(found, InputError):
        raise found
    also = f", coloured by {colours[0].parent}" if colours else "" if found.outlines.coloured else ", silhouettes"
    number = f"{len(photos)} photo" + ("s" if len(photos) > 1 else "")
    options.say(f"taken for outlines: {len(found)} pieces in {number}{also}")
    return found


def _colours_of(photos: Sequence[Path], options: OpenOptions) -> list[Path] | None:
    """Photographs of the same names that show the colours: in a folder that is told, or that lies beside."""
    home = photos[0].resolve().parent
    beside = [home.parent / name for name in _COLOURS if home.name == _SHAPES and (home.parent / name).is_dir()]
    folder = options.colours or next(iter(beside), None)
    if folder is None:
        return None
    named = {file.stem: file for file in files.pictures_in(folder)}
    for photo in photos:
        if photo.stem not in named:
            raise InputError(f"{folder}: has no picture called {photo.stem}, to show the colours of {photo}")
    return [named[photo.stem] for photo in photos]
