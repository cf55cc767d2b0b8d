"""Odd files of fragments: `solve` says in a line what it made of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from diffassemble.core import Mesh
from diffassemble.fragments.breaking import fracture
from diffassemble.fragments.shapes import make_solid
from diffassemble.io.meshes import mesh_bytes


def test_copies_other_units_and_files_inside_out_are_told(command: Callable[..., Any], tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(1)
    one, two = fracture(make_solid("statue", generator), 2, generator)
    inside_out = Mesh(two.vertices, two.faces.flip(1)[3:])
    huge = Mesh(1000 * fracture(make_solid("bowl", generator), 2, generator)[0].vertices, torch.zeros(0, 3).long())
    folder = tmp_path / "heap"
    folder.mkdir()
    for name, mesh in {"a": one, "b": inside_out, "c": one, "d": huge}.items():
        (folder / f"{name}.ply").write_bytes(mesh_bytes(mesh, ".ply"))
    done = command("solve", folder, "--no-pictures")
    assert done.code == 0
    assert "1 of 4 meshes are inside out (first: b.ply); turned round" in done.err
    assert "1 of 4 meshes are open (first: b.ply)" in done.err
    assert "d.ply is about" in done.err
    assert "times as large as the others: another unit?: d.ply" in done.out
    assert "left out, the same fragment as a.ply: c.ply" in done.out
    assert "sure: a.ply, b.ply" in done.out
    document = json.loads((tmp_path / "heap-solved" / "assembly.json").read_text())
    assert [piece["confidence"] > 0.9 for piece in document["pieces"]] == [True, True, False, False]
