"""Zip files are unpacked into their own folder, or refused in one line; nothing is ever written elsewhere."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from diffassemble.core import InputError
from diffassemble.core.limits import LIMITS
from diffassemble.io import archives
from diffassemble.io.archives import is_zip, pack, unpack, unpacked


def zipped(files: dict[str, bytes]) -> io.BytesIO:
    return io.BytesIO(pack(list(files.items())))


def entry(name: str, content: bytes = b"evil", **fields: int) -> io.BytesIO:
    """A zip file with an entry whose name and fields zipfile itself would not write."""
    buffer, info = io.BytesIO(), zipfile.ZipInfo("good.png")
    info.filename = name
    for field, value in fields.items():
        setattr(info, field, value)
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("good.png", b"good")
        archive.writestr(info, content)
    return buffer


def test_what_is_packed_comes_out(tmp_path: Path) -> None:
    files = {"a.png": b"one", "deep/b.ply": b"two" * 1000, "empty.txt": b""}
    assert pack(list(files.items())) == pack(list(files.items()))
    assert unpack(zipped(files), "x.zip", tmp_path) == tmp_path
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()} == set(files)
    assert all((tmp_path / name).read_bytes() == content for name, content in files.items())


def test_a_packed_folder_and_clutter_in_a_folder_that_is_removed(tmp_path: Path) -> None:
    files = {"my pieces/1.png": b"1", "my pieces/2.png": b"2", "__MACOSX/._1.png": b"?", "my pieces/.DS_Store": b"?"}
    (tmp_path / "x.zip").write_bytes(zipped(files).getvalue())
    assert is_zip(tmp_path / "x.ZIP")
    with unpacked(tmp_path / "x.zip") as folder:
        assert folder.name == "my pieces"
        assert sorted(path.name for path in folder.iterdir()) == ["1.png", "2.png"]
    assert not folder.exists()
    with pytest.raises(RuntimeError, match="work"), unpacked(tmp_path / "x.zip") as folder:
        raise RuntimeError("work")
    assert not folder.exists()


@pytest.mark.parametrize(
    "name", ["../evil.txt", "a/../../evil.txt", "/evil.txt", "C:/evil.txt", "..\\evil.txt", "x" * 300, "link"]
)
def test_names_that_lead_outside_and_links(tmp_path: Path, name: str) -> None:
    link = {"create_system": 3, "external_attr": (stat.S_IFLNK | 0o777) << 16} if name == "link" else {}
    (tmp_path / "home").mkdir()
    with pytest.raises(InputError, match="points outside"):
        unpack(entry(name, b"/etc", **link), "x.zip", tmp_path / "home")
    assert list(tmp_path.rglob("*")) == [tmp_path / "home"]


def test_a_bomb(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="zip bomb"):
        unpack(zipped({"bomb.png": b"\0" * 30_000_000}), "x.zip", tmp_path)
    assert not list(tmp_path.iterdir())
    # Another lies about its size.
    content = bytearray(zipped({"bomb.png": b"\0" * 3_000_000}).getvalue())
    for signature, offset in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        at = content.find(signature) + offset
        content[at : at + 4] = struct.pack("<I", 100)
    with pytest.raises(InputError, match=r"larger than the zip file states|broken"):
        unpack(io.BytesIO(bytes(content)), "x.zip", tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 1000


def test_too_much_and_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = zipped({f"{number}.png": b"" for number in range(5000)})
    for content, words in (
        (many, "has 5000 files, at most 2000"),
        (zipped({}), "has no files"),
        (entry("GOOD.png"), "two files of one name"),
    ):
        with pytest.raises(InputError, match=words):
            unpack(content, "x.zip", tmp_path)
    monkeypatch.setattr(archives, "LIMITS", replace(LIMITS, archive_bytes=1000))
    with pytest.raises(InputError, match=r"unpacks to 0\.0 GB"):
        unpack(zipped({"1.png": bytes(range(250)) * 5}), "x.zip", tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_is_no_zip_file(tmp_path: Path) -> None:
    damaged = bytearray(zipped({"a.bin": bytes(range(256)) * 50}).getvalue())
    damaged[60] ^= 0xFF
    for content in (b"", b"no zip at all", zipped({"a": b"abc" * 500}).getvalue()[:60], bytes(damaged)):
        with pytest.raises(InputError, match="is no zip file, or broken or cut short"):
            unpack(io.BytesIO(content), "x.zip", tmp_path)
    with pytest.raises(InputError, match="cannot be read"), unpacked(tmp_path / "none.zip"):
        pass
