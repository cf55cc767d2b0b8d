"""Output is whole or not there, and what others wrote stays."""

from __future__ import annotations

import os
import resource
import shutil
import stat
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import pytest

from diffassemble.core import InputError
from diffassemble.io.atomic import check_free, fresh_folder, write_file

HOLDS = ("mark.json", "data")


def fill(target: Path, text: str, overwrite: bool = False) -> None:
    with fresh_folder(target, HOLDS, overwrite) as part:
        (part / "mark.json").write_text(text)
        (part / "data").mkdir()
        (part / "data" / "one").write_text(text)


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder, hidden ones too, with its content."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in files}


@contextmanager
def small_files_only(most: int) -> Iterator[None]:
    """A block in which the system refuses to write more than so many bytes to a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_folder_is_there_only_when_done(tmp_path: Path) -> None:
    fill(tmp_path / "a" / "b" / "out", "made with its parents")
    assert tree(tmp_path / "a") == dict.fromkeys(("b/out/data/one", "b/out/mark.json"), "made with its parents")
    shutil.rmtree(tmp_path / "a")
    target = tmp_path / "out"
    with fresh_folder(target, HOLDS) as part:
        (part / "mark.json").write_text("x")
        assert not target.exists()
        assert part.parent == tmp_path
    assert tree(tmp_path) == {"out/mark.json": "x"}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("exists", [True, False])
def test_failure_leaves_everything_as_it_was(tmp_path: Path, error: type[BaseException], exists: bool) -> None:
    target = tmp_path / "a" / "out"
    if exists:
        fill(target, "old")
    before = sorted(tmp_path.rglob("*"))

    def break_off() -> None:
        with fresh_folder(target, HOLDS, overwrite=True) as part:
            (part / "mark.json").write_text("new")
            raise error

    with pytest.raises(error):
        break_off()
    assert sorted(tmp_path.rglob("*")) == before
    assert set(tree(tmp_path).values()) <= {"old"}


def test_overwriting_is_asked_for_and_never_takes_what_others_wrote(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()  # empty, it is free
    fill(target, "old")
    with pytest.raises(InputError, match="already exists; choose another --out or pass --overwrite"):
        fill(target, "new")
    assert (target / "mark.json").read_text() == "old"
    fill(target, "new", overwrite=True)
    assert tree(tmp_path) == {"out/mark.json": "new", "out/data/one": "new"}
    (target / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds other files \(notes.txt\)"):
        fill(target, "new", overwrite=True)
    (target / "notes.txt").unlink()
    (target / "mark.json").unlink()
    with pytest.raises(InputError, match=r"holds other files \(no mark.json\)"):
        fill(target, "new", overwrite=True)
    assert tree(tmp_path) == {"out/data/one": "new"}


def test_a_file_is_no_folder_and_the_working_folder_is_not_swapped(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="is a file"):
            fill(tmp_path / "out", "x", overwrite)
    with pytest.raises(InputError, match="out/deeper: cannot be written"):
        fill(tmp_path / "out" / "deeper", "x")
    assert tree(tmp_path) == {"out": "mine"}
    with chdir(tmp_path), pytest.raises(InputError, match="the folder you are in"):
        check_free(Path("."), HOLDS)


def test_links_stay_and_rights_follow_the_user(tmp_path: Path) -> None:
    fill(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    fill(tmp_path / "link", "new", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "mark.json").read_text() == "new"
    mask = os.umask(0o027)
    try:
        fill(tmp_path / "out", "x")
        write_file(tmp_path / "file", b"x")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_full_disk(tmp_path: Path) -> None:
    fill(tmp_path / "out", "old")
    write_file(tmp_path / "file", b"old")
    before = tree(tmp_path)
    with small_files_only(2):
        with pytest.raises(InputError, match="out: cannot be written"):
            fill(tmp_path / "out", "longer than two", overwrite=True)
        with pytest.raises(InputError, match="file: cannot be written"):
            write_file(tmp_path / "file", b"longer than two")
        with pytest.raises(InputError, match="two: cannot be written"):
            fill(tmp_path / "one" / "two", "longer than two")
    assert tree(tmp_path) == before
    assert not (tmp_path / "one").exists()


def test_file_is_replaced_whole(tmp_path: Path) -> None:
    write_file(tmp_path / "a" / "file", b"old")
    write_file(tmp_path / "a" / "file", b"new")
    assert tree(tmp_path) == {"a/file": "new"}
    with pytest.raises(InputError, match="a: cannot be written"):
        write_file(tmp_path / "a", b"x")
    assert tree(tmp_path) == {"a/file": "new"}
