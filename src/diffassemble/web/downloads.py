"""The files of an answer as downloads: each is rendered only when it is asked for, as the command line writes it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from diffassemble.core import Assembly
from diffassemble.files.archives import pack
from diffassemble.files.assemblies import assembly_bytes, write_assembly
from diffassemble.kinds import kind_of
from diffassemble.rendering.report import Pictures

ZIP, WHOLE, DOCUMENT, ANIMATION = "assembly.zip", "whole", "assembly.json", "steps.gif"
"""What can be downloaded; the whole is a picture or a model, whichever the pieces make up."""


def download(assembly: Assembly, wanted: str, folder: Path) -> tuple[str, bytes]:
    """The name and content of one download; a zip file is made within `folder`, where nothing stays."""
    if wanted == ZIP:
        return ZIP, _zip(assembly, folder)
    if wanted == DOCUMENT:
        return DOCUMENT, assembly_bytes(assembly)
    if wanted == ANIMATION:
        return ANIMATION, Pictures(assembly).steps
    model = next(kind_of(assembly.puzzle).further_files(assembly), None)
    return model or ("assembled.png", Pictures(assembly).assembled)


def _zip(assembly: Assembly, folder: Path) -> bytes:
    """All files of an assembly in one zip file."""
    with TemporaryDirectory(dir=folder) as home:
        target = Path(home) / "result"
        write_assembly(assembly, target)
        files = sorted(path for path in target.rglob("*") if path.is_file())
        return pack([(path.relative_to(target).as_posix(), path.read_bytes()) for path in files])
