"""Bad input ends in one line and code 2, quickly, and leaves everything as it was."""

from __future__ import annotations

import io
import json
import os
import struct
from importlib import import_module
from pathlib import Path
from typing import Annotated, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import diffassemble.cli.main as entry
from diffassemble.cli.arguments import bounds_of
from diffassemble.cli.evaluate import EvaluateOptions
from diffassemble.core import InputError
from diffassemble.core.limits import LIMITS, MEMORY_VARIABLE, check_memory
from diffassemble.core.settings import broken_bounds
from diffassemble.io.atomic import check_file, sweep, temporary_folder, write_file
from diffassemble.io.meshes import read_precisely
from diffassemble.io.pictures import is_our_picture, png_bytes
from diffassemble.training.presets import PRESETS


def glb(tree: object, numbers: bytes = b"") -> bytes:
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    chunk = struct.pack("<II", len(numbers), 0x004E4942) + numbers
    head = struct.pack("<5I", 0x46546C67, 2, 20 + len(text) + len(chunk), len(text), 0x4E4F534A)
    return head + text + chunk


def scene(count: int, nodes: int = 1, **view: int) -> dict[str, object]:
    return {
        "asset": {"version": "2.0"},
        "buffers": [{"byteLength": 36}],
        "bufferViews": [{"buffer": 0, "byteLength": 36, **view}],
        "accessors": [{"componentType": 5126, "type": "VEC3", "count": count, "bufferView": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "nodes": [{"mesh": 0}] * nodes,
        "scenes": [{"nodes": list(range(nodes))}],
    }


def npy(rows: int) -> bytes:
    content = io.BytesIO()
    np.save(content, np.zeros((4, 3)))
    return content.getvalue().replace(b"(4, 3)", f"({rows}, 3)".encode())


def loose(tree: dict[str, object], **accessor: object) -> dict[str, object]:
    """The same scene with an accessor of no view, which is all zeros."""
    return {**tree, "accessors": [{"componentType": 5125, "type": "SCALAR", **accessor}]}


BAD_MESHES = {
    "declared.glb": (glb(loose(scene(3), count=3_000_000_000)), "would take about"),
    "beyond its view.glb": (glb(scene(4), bytes(36)), "more than its view holds"),
    "backwards.glb": (glb(scene(14, byteStride=-1), bytes(36)), "'byteStride' is not 0, 1, 2"),
    "before its buffer.glb": (glb(scene(3, byteOffset=-36), bytes(36)), "'byteOffset' is not 0, 1, 2"),
    "instances.glb": (glb(scene(3, LIMITS.mesh_parts + 1), bytes(36)), "parts, at most"),
    "a circle.glb": (glb({**scene(3), "nodes": [{"children": [0, 0]}]}, bytes(36)), "child of two others"),
    "no tree.glb": (glb([1]), "is no record"),
    "cut.glb": (b"glTF", "ends within its head"),
    "deep.gltf": (b"[" * 5000 + b"]" * 5000, "its description"),
    "declared.ply": (b"ply\nformat ascii 1.0\nelement vertex 3000000000\nend_header\n", "more than the file holds"),
    "endless.ply": (b"ply\n" + b"comment\n" * 20_000, "does not end"),
    "declared.npy": (npy(3_000_000_000), "is no NPY file"),
}


def test_meshes_that_declare_what_they_do_not_hold(tmp_path: Path) -> None:
    for name, (content, says) in BAD_MESHES.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError) as caught:
            read_precisely(tmp_path / name)
        assert says in str(caught.value), name
        assert str(caught.value).startswith(str(tmp_path / name))


def test_memory_is_asked_for_before(monkeypatch: pytest.MonkeyPatch) -> None:
    check_memory(0.05 * LIMITS.memory, "this", "make it smaller")
    with pytest.raises(InputError, match=r"this would take about 8\.0 GB of memory, .* make it smaller, or allow more"):
        check_memory(2 * LIMITS.memory, "this", "make it smaller")
    monkeypatch.setenv(MEMORY_VARIABLE, "9")
    check_memory(2 * LIMITS.memory, "this", "make it smaller")
    monkeypatch.setenv(MEMORY_VARIABLE, "much")
    with pytest.raises(InputError, match="no number of gigabytes"):
        check_memory(2 * LIMITS.memory, "this", "make it smaller")


def test_only_our_own_files_are_replaced(tmp_path: Path) -> None:
    from PIL import Image

    ours, other, pipe = tmp_path / "ours.png", tmp_path / "other.png", tmp_path / "pipe"
    write_file(ours, png_bytes(Image.new("RGB", (2, 2))))
    Image.new("RGB", (2, 2)).save(other)
    os.mkfifo(pipe)
    check_file(tmp_path / "new.png", is_our_picture)
    check_file(ours, is_our_picture, overwrite=True)
    for path, overwrite, says in (
        (ours, False, "already exists"),
        (other, True, "was not written by this program"),
        (pipe, True, "is no plain file"),
        (Path("/dev/null"), True, "is no plain file"),
        (tmp_path, True, "is a folder"),
    ):
        with pytest.raises(InputError, match=says):
            check_file(path, is_our_picture, overwrite)


def test_left_overs_of_dead_processes_are_removed_and_those_of_others_stay(tmp_path: Path) -> None:
    dead = tmp_path / f".diffassemble-{'0' * 32}.part"
    (dead / "inside").mkdir(parents=True)
    (tmp_path / ".other.part").touch()
    with temporary_folder() as held:
        write_file(tmp_path / "x", b"x")
        assert not dead.exists()
        assert (tmp_path / ".other.part").exists()
        with temporary_folder():
            assert held.exists()
    assert not held.exists()
    sweep(tmp_path / "nowhere")


def test_arguments_are_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for words, says in (
        ("cut", "--out"),
        ("cut a.png --out", "Expected 1"),
        ("cut a.png --out b --grud 3", "perhaps you meant --grid"),
        ("cut a.png --out b --pieces x", "--pieces"),
        ("cut a --out b --shape q", "'q'"),
        ("evaluate --seed 1.5", "--seed"),
        ("solve /nowhere", "/nowhere: there is no such file or folder"),
        ("solve x --samples 1000000000", "--samples 1000000000: must be 1 or more and at most 10000"),
        *((words, "choose another --out") for words in ("solve x --out /", "solve x --out .", "cut x --out .")),
    ):
        assert entry.main(words.split()) == 2
        line = capsys.readouterr().err
        assert line.startswith("diffassemble: ")
        assert line.count("\n") == 1
        assert says in line


@pytest.mark.parametrize("verb", [verb for verb in entry.VERBS if verb != "train"])
def test_every_number_has_bounds(verb: str) -> None:
    """Every option that is a number is in the one table; counts have a largest."""
    source = EvaluateOptions if verb == "evaluate" else getattr(import_module(f"diffassemble.cli.{verb}"), verb)
    for name, hint in get_type_hints(source).items():
        kinds = {kind for one in (hint, *get_args(hint)) for kind in (one, *get_args(one))}
        if kinds & {int, float}:
            bounds = bounds_of(verb, name)
            assert broken_bounds([-(10**30)], bounds), name
            assert int not in kinds or broken_bounds([10**30], bounds), name


@pytest.mark.parametrize("task", sorted({preset.task for preset in PRESETS.values()}))
def test_every_number_of_a_training_run_has_bounds(task: str) -> None:
    defaults = next(preset for preset in PRESETS.values() if preset.task == task).learner.defaults
    for part in (defaults.model, defaults.data, defaults.training):
        for name, hint in get_type_hints(type(part), include_extras=True).items():
            inner = get_args(hint)[0] if get_origin(hint) is tuple else hint
            bare, *marks = get_args(inner) if get_origin(inner) is Annotated else (inner,)
            if bare in (int, float):
                assert broken_bounds([-(10**30)], marks), name
                assert bare is float or broken_bounds([10**30], marks), name
