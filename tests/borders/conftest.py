"""What the tests of bad input start from: one valid input of every kind that is read, never written to."""

from __future__ import annotations

import io
import json
import os
import resource
import struct
import tempfile
import zipfile
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
import trimesh
from PIL import Image

from diffassemble.cli.main import main

MOST_MEMORY = 1_500_000
"""kilobytes by which the process may grow while all bad inputs are tried"""


@dataclass(frozen=True)
class Given:
    """Folders of valid input."""

    folder: Path

    @property
    def files(self) -> dict[str, bytes]:
        """Valid content by file name: of every kind of picture and mesh, and a zip file."""
        return {path.name: path.read_bytes() for path in sorted((self.folder / "files").iterdir())}

    def words(self, command: str, **places: Path | str) -> list[str]:
        """The words of a command, of which those in capitals stand for valid input, or for these places."""
        known = {"PHOTO": "pictures/0.png", "SOLID": "files/solid.ply", "PICTURES": "pictures", "SQUARES": "squares"}
        found = {**{word: self.folder / name for word, name in known.items()}, **places}
        return [os.fspath(found.get(word, word)) for word in command.split()]

    def state(self) -> dict[Path, tuple[int, int]]:
        """By which one sees whether anything was changed."""
        return {path: (path.lstat().st_mtime_ns, path.lstat().st_size) for path in self.folder.rglob("*")}


def soft_picture(seed: int = 0, height: int = 24, width: int = 24) -> Image.Image:
    """A picture whose pieces differ."""
    random = np.random.default_rng(seed)
    coarse = Image.fromarray(random.integers(0, 255, (5, 5, 3), dtype=np.uint8))
    soft = np.array(coarse.resize((width, height), Image.Resampling.BICUBIC), dtype=int)
    return Image.fromarray((soft + random.integers(-9, 9, soft.shape)).clip(0, 255).astype(np.uint8))


def cloud() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(60, 3))


def mesh_files() -> Iterator[tuple[str, bytes]]:
    """The same solid in every format."""
    solid = trimesh.creation.icosphere(subdivisions=1)
    for ending in ("ply", "obj", "stl", "glb", "off"):
        content = solid.export(file_type=ending)
        yield f"solid.{ending}", content.encode() if isinstance(content, str) else content
    yield "ascii.ply", trimesh.exchange.ply.export_ply(solid, encoding="ascii")
    yield "ascii.stl", trimesh.exchange.stl.export_stl_ascii(solid).encode()
    parts = trimesh.Scene(solid).export(file_type="gltf")
    tree = json.loads(parts["model.gltf"])
    first = tree["buffers"][0]
    first["uri"] = "data:application/octet-stream;base64," + b64encode(parts[first["uri"]]).decode()
    yield "solid.gltf", json.dumps({**tree, "buffers": [first]}).encode()
    yield "cloud.xyz", "\n".join(" ".join(map(str, row)) for row in cloud()).encode()
    content = io.BytesIO()
    np.save(content, cloud())
    yield "cloud.npy", content.getvalue()


def picture_files() -> Iterator[tuple[str, bytes]]:
    """The same picture in every format."""
    for kind in ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF", "PPM"):
        content = io.BytesIO()
        soft_picture().save(content, kind)
        yield f"photo.{ {'JPEG': 'jpg', 'TIFF': 'tif'}.get(kind, kind.lower()) }", content.getvalue()


def zipped(entries: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, inner in entries.items():
            archive.writestr(name, inner)
    return content.getvalue()


@pytest.fixture(scope="session")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    """Valid input of every kind."""
    folder = tmp_path_factory.mktemp("given")
    (folder / "files").mkdir()
    for name, content in (*mesh_files(), *picture_files()):
        (folder / "files" / name).write_bytes(content)
    pieces = {f"{number}.png": _png(soft_picture(number, 8, 8)) for number in range(4)}
    (folder / "files" / "pieces.zip").write_bytes(zipped(pieces))
    (folder / "pictures").mkdir()
    for number in range(5):
        soft_picture(number, 48, 48).save(folder / "pictures" / f"{number}.png")
    photo, solid = str(folder / "pictures" / "0.png"), str(folder / "files" / "solid.ply")
    for words in (
        ["cut", photo, "--grid", "2x3", "--out", folder / "squares"],
        ["cut", photo, "--shape", "tabs", "--pieces", "4", "--out", folder / "outlines"],
        ["fracture", solid, "--pieces", "3", "--out", folder / "fragments"],
        *(
            ["solve", folder / kind, "--solver", "random", "--no-pictures", "--out", folder / f"{kind}-solved"]
            for kind in ("squares", "outlines", "fragments")
        ),
    ):
        assert main([str(word) for word in words]) == 0
    _save_model(folder / "model")
    return Given(folder)


def _png(image: Image.Image) -> bytes:
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()


def _save_model(folder: Path) -> None:
    from diffassemble.network.config import ModelConfig
    from diffassemble.network.denoiser import Denoiser

    torch.manual_seed(0)
    config = ModelConfig(head="cells", features=8, width=32, layers=1, heads=2, pose_width=16, time_width=8)
    Denoiser(config).save_pretrained(folder)


@pytest.fixture
def refused(
    given: Given, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Run a command on bad input in this process; it must end with code 2 and one line, and leave all as it was.

    With `maybe` it may also do what it is asked for. Gives the line.
    """
    temporary, work = tmp_path / "temporary", tmp_path / "work"
    for folder in (temporary, work):
        folder.mkdir(exist_ok=True)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.chdir(work)

    def run(words: list[str | Path], maybe: bool = False) -> str:
        before = given.state(), _tree(tmp_path)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        code = main([os.fspath(word) for word in words])
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown
        errors = capfd.readouterr().err.replace("compiling the search, once; about 10 s\n", "")
        assert "Traceback" not in errors
        assert grown < MOST_MEMORY, f"{grown / 1e6:.1f} GB more"
        assert given.state() == before[0], "valid input was changed"
        if maybe and code == 0:
            assert not list(tmp_path.rglob("*.part"))
            return ""
        assert code == 2, errors
        lines = [line for line in errors.splitlines() if not line.startswith("diffassemble: note:")]
        assert len(lines) == 1, errors
        assert lines[0].startswith("diffassemble: ")
        assert "not enough memory" not in lines[0]
        assert len(lines[0]) < 1500
        assert _tree(tmp_path) == before[1]
        return lines[0]

    return run


def _tree(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for home, folders, files in os.walk(folder):
        for name in (*folders, *files):
            status = os.lstat(os.path.join(home, name))
            found[os.path.join(home, name)] = (status.st_mode, status.st_size if name in files else 0)
    return found


def glb(tree: object, numbers: bytes = b"") -> bytes:
    """A GLB file of this description."""
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    chunk = struct.pack("<II", len(numbers), 0x004E4942) + numbers
    head = struct.pack("<5I", 0x46546C67, 2, 20 + len(text) + len(chunk), len(text), 0x4E4F534A)
    return head + text + chunk
