"""Answers become files: each is made only when it is asked for, as the command line writes it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from diffassemble.assembly.answer import Answer
from diffassemble.core import InputError
from diffassemble.io.archives import pack
from diffassemble.io.assemblies import assembly_bytes, write_assembly
from diffassemble.kinds import kind_of
from diffassemble.rendering.report import Pictures, report_html

ZIP, WHOLE, MODEL, DOCUMENT = "assembly.zip", "assembled.png", "assembled.glb", "assembly.json"
ANIMATION, REPORT, PLAN = "steps.gif", "report.html", "plan.png"
FILES = {
    ZIP: "Everything (zip)",
    WHOLE: "Picture (PNG)",
    MODEL: "Model (GLB)",
    DOCUMENT: "Places (JSON)",
    ANIMATION: "Animation (GIF)",
    REPORT: "Report (HTML)",
    PLAN: "Plan (PNG)",
}


def offered(kind: str) -> list[str]:
    """The files that there are of a kind of pieces."""
    absent = {"squares": {MODEL, PLAN}, "outlines": {MODEL}, "fragments": {PLAN}}[kind]
    return [name for name in FILES if name not in absent]


def content(assembly: Answer, wanted: str, folder: Path) -> bytes:
    """The content of one file; a zip file is made within `folder`, where nothing stays."""
    if wanted == ZIP:
        with TemporaryDirectory(dir=folder) as home:
            target = Path(home) / "result"
            write_assembly(assembly, target)
            files = sorted(path for path in target.rglob("*") if path.is_file())
            return pack([(path.relative_to(target).as_posix(), path.read_bytes()) for path in files])
    if wanted == DOCUMENT:
        return assembly_bytes(assembly)
    if wanted == MODEL:
        return next(made for name, made in kind_of(assembly.puzzle).further_files(assembly) if name == MODEL)
    pictures = Pictures(assembly)
    if wanted == REPORT:
        return report_html(pictures).encode()
    found = {WHOLE: lambda: pictures.assembled, ANIMATION: lambda: pictures.steps, PLAN: lambda: pictures.plan}
    if wanted not in found or (drawn := found[wanted]()) is None:
        raise InputError(f"there is no {wanted} of these pieces")
    return drawn
