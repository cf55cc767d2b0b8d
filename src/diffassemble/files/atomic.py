"""Files that can be read at all; and output that is whole or not there: written beside its place, then renamed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from diffassemble.core import InputError


def file_size(path: Path, wanted: str) -> int:
    """Bytes of a file that is there, not empty and may be read; anything else is refused, as what is `wanted`."""
    try:
        if not path.is_file():
            path.stat()
            raise InputError(f"{path}: is not a file; give a {wanted}")
        size = path.stat().st_size
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if size == 0:
        raise InputError(f"{path}: is empty (0 bytes)")
    return size


def one_line(error: Exception) -> str:
    """What an error says, or else its name; long texts are cut short."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 120 else text[:117] + "…"


def write_file(target: Path, content: bytes) -> None:
    """Write one file; an older one of that name is replaced in one go, or stays as it was."""
    with _staged(target) as part:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)


@contextmanager
def fresh_folder(target: Path, holds: tuple[str, ...], overwrite: bool = False) -> Iterator[Path]:
    """An empty folder to fill, which takes the place of `target` when the block ends well, and else vanishes.

    `holds` are the names that such a folder is made of, the telling one first; see `check_free`.
    """
    check_free(target, holds, overwrite)
    target = target.resolve()
    with _staged(target) as part:
        part.mkdir()
        yield part
        _swap(part, target)


def add_files(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Add files to a folder that we wrote: each appears whole or not at all, and all of them only if none fails.

    They are written beside the folder first, so that even a process that is killed leaves nothing half written in it.
    """
    folder = folder.resolve()
    with _staged(folder) as part:
        part.mkdir()
        for name, content in files:
            (part / name).parent.mkdir(exist_ok=True)
            (part / name).write_bytes(content)
        for entry in sorted(part.iterdir()):
            entry.rename(folder / entry.name)
        part.rmdir()


def check_free(target: Path, holds: tuple[str, ...], overwrite: bool = False) -> None:
    """Refuse a folder whose content would be lost.

    Overwriting takes away only what the program itself wrote: the folder must have the first of the
    names in `holds`, and nothing beside them.
    """
    try:
        found = {entry.name for entry in target.iterdir()} if target.exists() else set()
    except NotADirectoryError as error:
        raise InputError(f"{target} is a file; choose another --out") from error
    except OSError as error:
        raise InputError(f"{target}: cannot be read ({error.strerror}); choose another --out") from error
    if Path.cwd().is_relative_to(target.resolve()):
        raise InputError(f"{target} is the folder you are in; choose another --out")
    if not found:
        return
    if not overwrite:
        raise InputError(f"{target} already exists; choose another --out or pass --overwrite")
    strangers = sorted(found - set(holds))
    if strangers or holds[0] not in found:
        stranger = strangers[0] if strangers else f"no {holds[0]}"
        raise InputError(f"{target} holds other files ({stranger}), so it is not overwritten; choose another --out")


def _swap(part: Path, target: Path) -> None:
    """Put a finished folder in the place of another, or leave that one where it was."""
    if not target.exists():
        part.rename(target)
        return
    old = target.with_name(f".{uuid4().hex}.old")
    target.rename(old)
    try:
        part.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _staged(target: Path) -> Iterator[Path]:
    """A free name beside `target`; whatever is left under it when the block fails is removed again."""
    made: list[Path] = []
    part = target.parent / f".{uuid4().hex}.part"
    try:
        for folder in reversed([target.parent, *target.parent.parents]):
            if not folder.exists():
                folder.mkdir()
                made.append(folder)
        yield part
    except BaseException as error:
        # What was begun is removed, if it can be: the error that led here is the one to tell.
        for path in (part, *reversed(made)):
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if isinstance(error, OSError):
            raise InputError(f"{target}: cannot be written ({error.strerror or error})") from error
        raise


def cache_folder() -> Path:
    """Where this program keeps what it can make anew: in $XDG_CACHE_HOME, or else in ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "diffassemble"
