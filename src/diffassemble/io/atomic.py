"""Output that is complete or absent, written under a lock beside its place and renamed; only own output is replaced."""

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


def write_file(target: Path, content: bytes | memoryview) -> None:
    """Write one file; an older one of that name is replaced in one go, or stays as it was."""
    with _staged(target) as part, _held(part) as handle:
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(content)
        os.fsync(handle)
        part.replace(target)


def check_file(target: Path, ours: Callable[[bytes], bool], overwrite: bool = False) -> None:
    """Refuse a file that can't be written, or is no plain file that `ours` recognises as written by this program."""
    try:
        found = target.stat() if _exists(target) else None
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


def check_free(target: Path, holds: tuple[str, ...], overwrite: bool = False) -> None:
    """Refuse a folder with content, unless it is overwritten and has the first of the names `holds`, and no others."""
    try:
        found = {entry.name for entry in target.iterdir()} if _exists(target) else set()
        inside = Path.cwd().is_relative_to(target.resolve())
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, NotADirectoryError) and os.path.lexists(target):
            raise InputError(f"{target} is a file; choose another --out") from error
        raise InputError(f"{target}: cannot be written ({reason(error)}); choose another --out") from error
    if inside:
        raise InputError(f"{target} is the folder you are in, or holds it; choose another --out")
    if found and not overwrite:
        raise InputError(f"{target} already exists; choose another --out or pass --overwrite")
    strangers = sorted(found - set(holds)) or [f"no {holds[0]}"] * bool(found and holds[0] not in found)
    if strangers:
        raise InputError(f"{target} holds other files ({strangers[0]}), so it is not overwritten; choose another --out")


def _exists(path: Path) -> bool:
    """Whether something has this name; what can be no name raises, as it would when it is written."""
    with suppress(FileNotFoundError):
        os.lstat(path)
        return True
    return False


@contextmanager
def fresh_folder(target: Path, holds: tuple[str, ...], overwrite: bool = False) -> Iterator[Path]:
    """An empty folder to fill, which replaces `target` (see `check_free`) when the block ends well, else is removed."""
    check_free(target, holds, overwrite)
    target = target.resolve()
    with _staged(target) as part, _held(part, folder=True):
        yield part
        _swap(part, target)


def add_files(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Add files to a folder that this program wrote: each appears complete, and all of them only if none fails."""
    folder = folder.resolve()
    with _staged(folder) as part, _held(part, folder=True):
        for name, content in files:
            (part / name).parent.mkdir(exist_ok=True)
            (part / name).write_bytes(content)
        for entry in sorted(part.iterdir()):
            entry.rename(folder / entry.name)
        part.rmdir()


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
    """Remove what ended processes left behind in a folder: those alive hold a lock on theirs."""
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
    """Make a file or folder and hold its lock, which `sweep` respects, while the block runs; gives its handle."""
    while True:
        if folder:
            path.mkdir()
        handle = os.open(path, os.O_RDONLY if folder else os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with suppress(OSError):  # file systems without locks cannot be swept either
                fcntl.flock(handle, fcntl.LOCK_EX)
            # Another process may have swept it before it was locked; then it is made again.
            if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                yield handle
                return
        finally:
            os.close(handle)


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
    """Exchange two folders atomically, where the system can: then a kill never leaves the place empty."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    return rename is not None and rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


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
        # What was begun is removed, if it can be; the first error is reported.
        for path in (part, *reversed(made)):
            with suppress(OSError):
                _remove(path)
        if isinstance(error, OSError):
            raise InputError(f"{target}: cannot be written ({reason(error)})") from error
        raise


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def cache_folder() -> Path:
    """The folder of what this program can make again: in $XDG_CACHE_HOME, or else in ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "diffassemble"
