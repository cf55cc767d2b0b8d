"""Output that is whole or not there, written beside its place and then renamed; and what may be replaced by it.

One rule holds for all that is written: what this program wrote may be replaced if that is asked for, what others wrote
never. What is being written carries a lock, by which the next run knows what a killed one left behind, and removes it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from diffassemble.core import InputError
from diffassemble.io.reading import reason

_PART = re.compile(r"\.diffassemble-[0-9a-f]{32}\.part")
_TEMPORARY = re.compile(r"diffassemble-[0-9a-f]{32}")
_EXCHANGE, _HERE = 2, -100  # of Linux: RENAME_EXCHANGE and AT_FDCWD


def write_file(target: Path, content: bytes | memoryview) -> None:
    """Write one file; an older one of that name is replaced in one go, or stays as it was."""
    with _staged(target) as part, _held(part) as handle:
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(content)
        os.fsync(handle)
        part.replace(target)


def check_file(target: Path, ours: Callable[[bytes], bool], overwrite: bool = False) -> None:
    """Refuse a file whose content would be lost, before hours are spent on what it is to hold.

    Overwriting takes away only what the program itself wrote, which `ours` knows by its content. Nothing but plain
    files is ever replaced.
    """
    try:
        found = target.stat() if _is_there(target) else None
        if found is None or (stat.S_ISREG(found.st_mode) and found.st_size == 0):
            there = next(folder for folder in target.absolute().parents if folder.exists())
            if not (there.is_dir() and os.access(there, os.W_OK)):
                raise InputError(f"{target}: cannot be written, {there} does not allow it; pass another file")
            return
        if stat.S_ISDIR(found.st_mode):
            raise InputError(f"{target} is a folder; pass the name of a file")
        if not stat.S_ISREG(found.st_mode) or target.is_symlink():
            raise InputError(f"{target} is no plain file, so it is not overwritten; pass another one")
        if not overwrite:
            raise InputError(f"{target} already exists; pass another file, or --overwrite if this program wrote it")
        if not ours(target.read_bytes()):
            raise InputError(f"{target} was not written by this program, so it is not overwritten; pass another file")
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{target}: cannot be written ({reason(error)}); pass another file") from error


def _is_there(path: Path) -> bool:
    """Whether something has this name; what can be no name raises, as it would when it is written."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    return True


@contextmanager
def fresh_folder(target: Path, holds: tuple[str, ...], overwrite: bool = False) -> Iterator[Path]:
    """An empty folder to fill, which takes the place of `target` when the block ends well, and else vanishes.

    `holds` are the names that such a folder is made of, the telling one first; see `check_free`.
    """
    check_free(target, holds, overwrite)
    target = target.resolve()
    with _staged(target) as part, _held(part, folder=True):
        yield part
        _swap(part, target)


def add_files(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Add files to a folder that we wrote: each appears whole or not at all, and all of them only if none fails.

    They are written beside the folder first, so that even a process that is killed leaves nothing half written in it.
    """
    folder = folder.resolve()
    with _staged(folder) as part, _held(part, folder=True):
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
        found = {entry.name for entry in target.iterdir()} if _is_there(target) else set()
        inside = Path.cwd().is_relative_to(target.resolve())
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, NotADirectoryError) and os.path.lexists(target):
            raise InputError(f"{target} is a file; choose another --out") from error
        raise InputError(f"{target}: cannot be written ({reason(error)}); choose another --out") from error
    if inside:
        raise InputError(f"{target} is the folder you are in, or holds it; choose another --out")
    if not found:
        return
    if not overwrite:
        raise InputError(f"{target} already exists; choose another --out or pass --overwrite")
    strangers = sorted(found - set(holds))
    if strangers or holds[0] not in found:
        stranger = strangers[0] if strangers else f"no {holds[0]}"
        raise InputError(f"{target} holds other files ({stranger}), so it is not overwritten; choose another --out")


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """An empty folder that is removed when the block ends; or, if this process is killed, by the next one."""
    home = Path(tempfile.gettempdir())
    sweep(home, _TEMPORARY)
    folder = home / f"diffassemble-{uuid4().hex}"
    with _held(folder, folder=True):
        folder.chmod(0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def sweep(folder: Path, left: re.Pattern[str] = _PART) -> None:
    """Remove what processes that are no more left behind in a folder: those alive hold a lock on theirs."""
    with suppress(OSError):
        names = [entry.name for entry in os.scandir(folder) if left.fullmatch(entry.name)]
        for path in (folder / name for name in names):
            with suppress(OSError):
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(path)
                finally:
                    os.close(handle)


@contextmanager
def _held(path: Path, folder: bool = False) -> Iterator[int]:
    """Make a file or folder and hold its lock, which whoever sweeps sees, while the block runs; gives its handle."""
    handle = _made(path, folder)
    # Somebody who swept before it was locked has removed it.
    while not _is_at(handle, path):
        os.close(handle)
        handle = _made(path, folder)
    try:
        yield handle
    finally:
        os.close(handle)


def _made(path: Path, folder: bool) -> int:
    if folder:
        path.mkdir()
        handle = os.open(path, os.O_RDONLY)
    else:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with suppress(OSError):  # on file systems without locks nobody can sweep either
        fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _swap(part: Path, target: Path) -> None:
    """Put a finished folder in the place of another, or leave that one where it was."""
    if not target.exists():
        part.rename(target)
    elif _exchanged(part, target):
        shutil.rmtree(part, ignore_errors=True)
    else:
        old = target.with_name(f".{uuid4().hex}.old")
        target.rename(old)
        try:
            part.rename(target)
        except OSError:
            old.rename(target)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders in one go, where the system can: then no kill finds the place empty."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0


@contextmanager
def _staged(target: Path) -> Iterator[Path]:
    """A free name beside `target`; whatever is left under it when the block fails is removed again."""
    made: list[Path] = []
    part = target.parent / f".diffassemble-{uuid4().hex}.part"
    try:
        for folder in reversed([target.parent, *target.parent.parents]):
            if not folder.exists():
                folder.mkdir()
                made.append(folder)
        sweep(target.parent)
        yield part
    except BaseException as error:
        # What was begun is removed, if it can be: the error that led here is the one to tell.
        for path in (part, *reversed(made)):
            with suppress(OSError):
                _remove(path)
        if isinstance(error, OSError):
            raise InputError(f"{target}: cannot be written ({reason(error)})") from error
        raise


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def cache_folder() -> Path:
    """Where this program keeps what it can make anew: in $XDG_CACHE_HOME, or else in ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "diffassemble"
