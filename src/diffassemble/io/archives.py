"""Untrusted zip files: unpacked into a temporary folder of their own, or refused; bytes are counted while unpacking."""

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

_CLUTTER = re.compile(r"^__MACOSX/|(^|/)(\.DS_Store|Thumbs\.db|desktop\.ini)$")
"""files that operating systems add"""


def is_zip(path: Path | str) -> bool:
    """Whether this is meant to be a zip file, by its name."""
    return Path(path).suffix.lower() == ".zip"


@contextmanager
def unpacked(path: Path | str) -> Iterator[Path]:
    """The folder that a zip file holds, for as long as the block runs."""
    path = Path(path)
    with opened(path, "zip file", LIMITS.archive_bytes) as content, temporary_folder() as home:
        yield unpack(content, path.name, home)


def unpack(content: io.BufferedIOBase, name: str, folder: Path) -> Path:
    """Unpack into an empty folder, nothing outside of it; gives it, or the one folder in it that holds everything."""
    try:
        with zipfile.ZipFile(_Sparing(content)) as archive:
            members = [info for info in archive.infolist() if not info.is_dir() and not _CLUTTER.search(info.filename)]
            _check(members, name)
            room = LIMITS.archive_bytes
            for info in members:
                room -= _extract(archive, info, folder, name, room)
    # Broken archives fail in every way there is.
    except Exception as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: is no zip file, or broken or cut short ({reason(error)})") from error
    # People pack a folder or its files.
    while len(inside := list(folder.iterdir())) == 1 and inside[0].is_dir():
        folder = inside[0]
    return folder


class _Sparing:
    """A file that is never read far at once: a list of millions of contents would fill the memory."""

    def __init__(self, file: io.BufferedIOBase) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        """As of files, up to the limit."""
        most = LIMITS.archive_index
        found = self._file.read(most + 1 if size < 0 else min(size, most + 1))
        if len(found) > most:
            raise ValueError("its list of contents is too long")
        return found


def pack(files: list[tuple[str, bytes]]) -> bytes:
    """A zip file with these names and contents; the same for the same files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _check(members: list[zipfile.ZipInfo], name: str) -> None:
    """Refuse by the list of contents, before anything is unpacked."""
    if not members:
        raise InputError(f"{name}: has no files in it; pack pictures or meshes")
    if len(members) > (most := LIMITS.archive_entries):
        raise InputError(f"{name}: has {len(members)} files, at most {most} are unpacked; pack fewer")
    for info in members:
        if not _is_safe(info):
            raise InputError(f"{name}: {info.filename!r} points outside of the zip file; pack it anew with plain names")
        if info.flag_bits & 1:
            raise InputError(f"{name}: is locked by a password; pack it without")
    total, packed = sum(info.file_size for info in members), sum(info.compress_size for info in members)
    if total > (most := LIMITS.archive_bytes):
        raise InputError(f"{name}: unpacks to {total / 1e9:.1f} GB, at most {most / 1e9:.0f} are; pack less")
    # Up to 10 MB, any zip file may grow.
    if total > max(10_000_000, LIMITS.archive_ratio * packed):
        raise InputError(f"{name}: {packed} bytes would unpack to {total}; that is a zip bomb, not a puzzle")
    if len({info.filename.casefold() for info in members}) != len(members):
        raise InputError(f"{name}: holds two files of one name; pack it anew")


def _is_safe(info: zipfile.ZipInfo) -> bool:
    """Whether this is a plain file, and no link, at a relative place below."""
    name, place = info.filename, PurePosixPath(info.filename)
    link = info.create_system == 3 and (info.external_attr >> 16) & 0o170000 not in (0, 0o100000)
    plain = name.isprintable() and not set(name) & set("\\:") and len(name) < LIMITS.name_length
    return bool(place.parts) and plain and not link and not place.is_absolute() and ".." not in place.parts


def _extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path, name: str, room: int) -> int:
    """Unpack one file and give its bytes; never more than `room`, nor more than its entry states."""
    target, written = folder / info.filename, 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        file = target.open("xb")
    except OSError as error:
        raise InputError(f"{name}: {info.filename!r} cannot be unpacked ({reason(error)}); pack it anew") from error
    with archive.open(info) as source, file:
        while chunk := source.read(1 << 20):
            written += len(chunk)
            if written > min(room, info.file_size):
                raise InputError(f"{name}: {info.filename!r} is larger than the zip file states; pack it anew")
            try:
                file.write(chunk)
            except OSError as error:
                raise InputError(f"{target}: cannot be written ({reason(error)})") from error
    return written
