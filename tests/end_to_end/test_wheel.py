"""What is published works: a source archive, the wheel made of it, installed into an environment of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SDIST = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"


def run(*words: str | Path, folder: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_archives_are_whole_and_can_be_installed(tmp_path: Path) -> None:
    # Built of a copy, so that nothing is left in the project.
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    listed = run("git", "ls-files", "-z", folder=ROOT).split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    out.mkdir()
    setting = (source / "pyproject.toml").read_text()
    (source / "pyproject.toml").write_text(setting.replace('links = ""', 'links = "https://files.example/v1"'))
    run(sys.executable, "-c", SDIST, out, folder=source)
    (archive,) = out.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        assert any(name.endswith("/pyproject.toml") for name in opened.getnames())
    apart = ("--no-deps", "--no-build-isolation", "--quiet")
    run(sys.executable, "-m", "pip", "wheel", *apart, "--wheel-dir", out, archive, folder=tmp_path)
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        (metadata,) = (opened.read(name).decode() for name in names if name.endswith("/METADATA"))
    assert "](https://files.example/v1/docs/pictures/" in metadata
    assert not re.search(r"\]\((?!https:|#)", metadata)
    package = ROOT / "src" / "diffassemble"
    wanted = [*package.rglob("*.py"), *package.glob("weights/*/*"), package / "py.typed"]
    assert {str(path.relative_to(package.parent)) for path in wanted} <= names
    assert {"LICENSE", "NOTICE"} <= {Path(name).name for name in names if ".dist-info/" in name}
    # Its own environment; what it needs, which is large, is borrowed from this one and stands behind.
    home = tmp_path / "environment"
    run(sys.executable, "-m", "venv", home, folder=tmp_path)
    python = home / "bin" / "python"
    (own,) = home.glob("lib/python*/site-packages")
    (own / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    run(python, "-m", "pip", "install", *apart, wheel, folder=tmp_path)
    where = run(python, "-c", "import diffassemble; print(diffassemble.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(own)
    assert run(home / "bin" / "diffassemble", "--version", folder=tmp_path).startswith("diffassemble ")
    assert "jigsaw" in run(home / "bin" / "diffassemble", "models", folder=tmp_path)
