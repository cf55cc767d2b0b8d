"""Opening files for reading: plain files only, within the limits of `core.limits`."""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diffassemble.core import InputError
from diffassemble.core.limits import LIMITS


@contextmanager
def opened(path: Path | str, wanted: str, most: int) -> Iterator[io.BufferedReader]:
    """A plain, non-empty, readable file of at most `most` bytes; all else is refused, pipes at once."""
    path = Path(path)
    try:
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    except IsADirectoryError as error:
        raise InputError(f"{path}: is not a file; give a {wanted}") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({reason(error)})") from error
    with file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{path}: is not a file; give a {wanted}")
        if found.st_size == 0:
            raise InputError(f"{path}: is empty (0 bytes)")
        if found.st_size > most:
            size = f"has {found.st_size / 1e6:.0f} MB, at most {most / 1e6:.0f} are read"
            raise InputError(f"{path}: {size}; give a smaller {wanted}")
        yield file


def file_size(path: Path, wanted: str, most: int) -> int:
    """Bytes of a file that `opened` would open."""
    with opened(path, wanted, most) as file:
        return os.fstat(file.fileno()).st_size


def read_bytes(path: Path | str, wanted: str, most: int = LIMITS.document_bytes) -> bytes:
    """The whole content of a file; one that grows beyond the limit while it is read is refused, too."""
    with opened(path, wanted, most) as file:
        try:
            content = file.read(most + 1)
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({reason(error)})") from error
    if len(content) > most:
        raise InputError(f"{path}: grows while it is read; give a smaller {wanted}")
    return content


def read_json(path: Path | str, wanted: str, most: float = LIMITS.document_number) -> Any:
    """The value of a JSON file; see `parse_json`."""
    return parse_json(read_bytes(path, wanted), str(path), wanted, most)


def parse_json(content: bytes | str, name: str, wanted: str, most: float = LIMITS.document_number) -> Any:
    """A JSON value within the limits: not too deep, numbers finite and up to ±`most`; messages call it `name`."""

    def refuse(word: str) -> None:
        raise InputError(f"{word} is no number; write it anew")

    try:
        found = json.loads(content, parse_constant=refuse)
        _check(found, most)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise InputError(f"{name}: {error}") from error
        raise InputError(f"{name}: is not JSON; give a {wanted}, or write it anew") from error
    return found


def _check(found: Any, most: float) -> None:
    """Refuse values beyond the limits; level by level, since deep documents attack recursion."""
    level = [found]
    for _ in range(LIMITS.document_depth):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner += [*value, *value.values()]
            elif isinstance(value, list):
                inner += value
            elif isinstance(value, str):
                value.encode()
            elif type(value) is int and not -(2**63) <= value < 2**63:
                raise InputError("has a whole number of over 18 digits; write it anew")
            elif type(value) is float and not abs(value) <= most:
                raise InputError(f"has a number beyond {most:.0e}; write it anew")
        if not inner:
            return
        level = inner
    raise InputError(f"is nested deeper than {LIMITS.document_depth}; write it anew")


def reason(error: BaseException) -> str:
    """Why something failed, in one short line: the system's words, or else the error's text or name."""
    text = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 120 else text[:117] + "…"


def files_in(folder: Path, endings: Collection[str]) -> list[Path]:
    """The files of a folder with these endings, in the order of their names; hidden ones are ignored."""
    try:
        return sorted(
            file
            for file in folder.iterdir()
            if file.suffix.lower() in endings and not file.name.startswith(".") and file.is_file()
        )
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from error


def check_name(path: Path) -> Path:
    """The same path, if its name can be written into a document."""
    try:
        size = len(path.name.encode())
    except UnicodeEncodeError as error:
        raise InputError(f"{str(path)!a}: its name is no UTF-8; rename it") from error
    if size > LIMITS.name_length:
        raise InputError(f"{path.name[:40]}…: its name has over {LIMITS.name_length} bytes; rename it")
    return path
