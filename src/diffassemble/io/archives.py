"""Zip files from strangers: unpacked into a folder of their own, which is removed afterwards, or refused.

What a zip file tells about itself is not believed: bytes are counted while they are unpacked.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from diffassemble.core import InputError
from diffassemble.core.limits import LIMITS
from diffassemble.io.atomic import temporary_folder
from diffassemble.io.reading import opened, reason

MOST_FILES = LIMITS.archive_entries
MOST_BYTES = LIMITS.archive_bytes
_CHUNK = 1 << 20
_NEVER_A_BOMB = 10_000_000
# What computers add by themselves.
_CLUTTER = re.compile(r"^__MACOSX/|(^|/)(\.DS_Store|Thumbs\.db|desktop\.ini)$")


def is_zip(path: Path | str) -> bool:
    """Whether this is meant to be a zip file, by its name."""
    return Path(path).suffix.lower() == ".zip"


@contextmanager
def unpacked(path: Path | str) -> Iterator[Path]:
    """The folder that a zip file holds, for as long as the block runs."""
    path = Path(path)
    with opened(path, "zip file", MOST_BYTES) as content, temporary_folder() as home:
        yield unpack(content, path.name, home)


def unpack(content: io.BufferedIOBase, name: str, folder: Path) -> Path:
    """Unpack into an empty folder; gives it, or the folder in it that holds everything.

    `name` is what the file is called in messages. Whatever goes wrong, nothing is written outside the folder.
    """
    try:
        with zipfile.ZipFile(_Sparing(content)) as archive:
            members = [
                info for info in archive.infolist() if not _is_folder(info) and not _CLUTTER.search(info.filename)
            ]
            _check(members, name)
            room = MOST_BYTES
            for info in members:
                room -= _extract(archive, info, folder, name, room)
    # Broken archives fail in every way there is.
    except Exception as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: is no zip file, or broken or cut short ({reason(error)})") from error
    return _single_folder(folder)


class _Sparing:
    """A file of which nobody reads much at once: a list of millions of contents would fill the memory."""

    def __init__(self, file: io.BufferedIOBase) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        """As of files; the end is read in one go only if it is near."""
        found = self._file.read(LIMITS.archive_index + 1 if size < 0 else min(size, LIMITS.archive_index + 1))
        if len(found) > LIMITS.archive_index:
            raise ValueError("its list of contents is too long")
        return found


def _is_folder(info: zipfile.ZipInfo) -> bool:
    return info.filename.endswith("/")


def pack(files: list[tuple[str, bytes]]) -> bytes:
    """A zip file with these names and contents; the same for the same files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _check(members: list[zipfile.ZipInfo], name: str) -> None:
    """Refuse by what the archive tells, before anything is unpacked."""
    if not members:
        raise InputError(f"{name}: has no files in it; pack pictures or meshes")
    if len(members) > MOST_FILES:
        raise InputError(f"{name}: has {len(members)} files, at most {MOST_FILES} are unpacked; pack fewer")
    for info in members:
        if not _is_safe(info):
            raise InputError(f"{name}: {info.filename!r} points outside of the zip file; pack it anew with plain names")
        if info.flag_bits & 1:
            raise InputError(f"{name}: is locked by a password; pack it without")
    total, packed = sum(info.file_size for info in members), sum(info.compress_size for info in members)
    if total > MOST_BYTES:
        raise InputError(f"{name}: unpacks to {total / 1e9:.1f} GB, at most {MOST_BYTES / 1e9:.0f} are; pack less")
    if total > max(_NEVER_A_BOMB, LIMITS.archive_ratio * packed):
        raise InputError(f"{name}: {packed} bytes would unpack to {total}; that is a zip bomb, not a puzzle")
    names = [info.filename.casefold() for info in members]
    if len(set(names)) != len(names):
        raise InputError(f"{name}: holds two files of one name; pack it anew")


def _is_safe(info: zipfile.ZipInfo) -> bool:
    """A plain file at a relative place below."""
    place = PurePosixPath(info.filename)
    unix_kind = (info.external_attr >> 16) & 0o170000
    link = info.create_system == 3 and unix_kind not in (0, 0o100000)
    plain = info.filename.isprintable() and not set(info.filename) & set("\\:")
    return (
        bool(place.parts)
        and plain
        and not link
        and not place.is_absolute()
        and ".." not in place.parts
        and len(info.filename) < LIMITS.name_length
    )


def _extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path, name: str, room: int) -> int:
    """Unpack one file and give its bytes; never more than `room`, nor more than it told."""
    target = folder / info.filename
    written = 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        file = target.open("xb")
    except OSError as error:
        raise InputError(f"{name}: {info.filename!r} cannot be unpacked ({reason(error)}); pack it anew") from error
    with archive.open(info) as source, file:
        while chunk := source.read(_CHUNK):
            written += len(chunk)
            if written > min(room, info.file_size):
                raise InputError(f"{name}: {info.filename!r} is larger than the zip file says; it is not to be trusted")
            try:
                file.write(chunk)
            except OSError as error:
                raise InputError(f"{target}: cannot be written ({reason(error)})") from error
    return written


def _single_folder(folder: Path) -> Path:
    """People pack a folder or its files; both are meant."""
    inside = list(folder.iterdir())
    return _single_folder(inside[0]) if len(inside) == 1 and inside[0].is_dir() else folder
