"""What people take home."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from diffassemble.files import write_assembly
from diffassemble.files.archives import pack
from diffassemble.puzzle import Assembly
from diffassemble.rendering.report import report_html


def result_files(assembly: Assembly, folder: Path) -> list[tuple[str, bytes]]:
    """The names and contents of all files of an assembly; `folder` lends room for making them."""
    with TemporaryDirectory(dir=folder) as home:
        target = Path(home) / "result"
        write_assembly(assembly, target, report=report_html(assembly))
        files = sorted(path for path in target.rglob("*") if path.is_file())
        return [(path.relative_to(target).as_posix(), path.read_bytes()) for path in files]


def result_zip(assembly: Assembly, folder: Path) -> bytes:
    """All of it in one zip file."""
    return pack(result_files(assembly, folder))
