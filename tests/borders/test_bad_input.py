"""Over a thousand bad inputs, made here, each ends in one line and code 2, quickly, and leaves everything as it was.

By kind: numbers of every option; broken files of every format; documents with every field changed; places that can't be
written; inputs that are none; models, checkpoints and lists that are junk.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
import torch
from safetensors.torch import load, save_file
from tests.borders.conftest import Given, glb, mesh_files, picture_files, zipped

from diffassemble.cli.evaluate import EvaluateOptions
from diffassemble.core.limits import LIMITS

Refused = Callable[..., str]
QUICK = ["--solver", "random", "--no-pictures"]
# Verbs with what they need beside the option that is tried.
VERBS: dict[str, list[str]] = {
    "cut": ["x.png", "--out", "out", "--grid", "2"],
    "fracture": ["bowl", "--out", "out"],
    "solve": ["x", "--out", "out"],
    "evaluate": ["--data", "x"],
    "demo": ["--out", "out"],
    "serve": ["x"],
}
NUMBERS = ("-1", "nan", "x", "", "1e400", "9" * 400, "0x10", "1;2")
# What some options accept though others do not.
ALLOWED = {("solve", "budget"): {"1e400", "9" * 400}, ("evaluate", "budget"): {"1e400", "9" * 400}}


def _numeric(verb: str) -> list[str]:
    source = EvaluateOptions if verb == "evaluate" else getattr(import_module(f"diffassemble.cli.{verb}"), verb)
    found = []
    for name, hint in get_type_hints(source).items():
        kinds = {kind for one in (hint, *get_args(hint)) for kind in (one, *get_args(one))}
        found += [name] if kinds & {int, float} else []
    return found


OPTIONS = [
    (verb, name, value)
    for verb in VERBS
    for name in _numeric(verb)
    for value in NUMBERS
    if value not in ALLOWED.get((verb, name), ())
]


@pytest.mark.parametrize(("verb", "name", "value"), OPTIONS, ids=lambda part: part[:12])
def test_numbers(verb: str, name: str, value: str, refused: Refused) -> None:
    assert "--" in refused([verb, *VERBS[verb], f"--{name.replace('_', '-')}", value])


WORDS = (
    "nothing",
    "-x",
    "solve",
    "cut x.png --out out",
    *(f"cut x.png --out out --grid {grid}" for grid in ("0x5", "1000x1000", "6x6x6", "９x９", "\x00")),
    "cut x.png --out out --shape tabs",
    "cut --out out --grid 2",
    *(f"solve x --{rest}" for rest in ("solver magic", "kind magic", "turn 45", "objects 2", "grid 2 --grid")),
    "evaluate",
    "evaluate --table nope",
    *(f"evaluate --data solids={count}" for count in ("0", "9" * 5000, "²")),
    *(f"evaluate --table 3 --data faces:{count}=x" for count in ("0", "9" * 5000)),
    "evaluate --rows x",
    "evaluate --figure x.png",
    "evaluate --split nope --data x",
    "train",
    "train nope",
    "train jigsaw",
    "train jigsaw --data.folders nowhere",
    "train jigsaw --resume",
    "train jigsaw --training.steps x --data.folders .",
    "train jigsaw --nope 1",
    "train fragments --data.solids 3 --data.points 1",
    "train fragments --data.solids 9999999",
    *(
        f"train jigsaw --data.folders x --model.{much}"
        for much in ("layers 100000", "times 2000000000", "width 100000")
    ),
    *(f"train jigsaw --data.folders x --training.{much} 100000" for much in ("pieces", "devices")),
    *(f"train jigsaw --data.folders x --training.{bad}" for bad in ("seed -1", "learning-rate nan")),
    "fracture no-solid --out out",
    "fracture bowl --out out --format exe",
    "models --nope",
    "--completion tcsh",
)


@pytest.mark.parametrize("words", WORDS, ids=lambda words: ascii(words)[:40])
def test_words(words: str, refused: Refused) -> None:
    refused(words.split(" "))


def broken(content: bytes) -> dict[str, bytes]:
    """A file in ways that every format can be broken in."""
    random = np.random.default_rng(0)
    flipped = bytearray(content)
    for place in random.integers(0, len(content), 12):
        flipped[place] ^= 1 << int(random.integers(8))
    middle = len(content) // 2
    return {
        "empty": b"",
        "one byte": content[:1],
        "head alone": content[:20],
        "half": content[:middle],
        "noise": random.bytes(500),
        "zeros": bytes(500),
        "text": b"this is no file of that kind\n" * 9,
        "flipped": bytes(flipped),
        "hole": content[:middle] + b"\xff" * 40 + content[middle + 40 :],
        "twice": content + content,
    }


FILES = dict([*mesh_files(), *picture_files()])
# What may still be a file of its kind: with some numbers changed, or something behind its end.
HARMLESS = ("flipped", "hole", "twice", "half", "text")
BROKEN = [(name, how) for name in FILES for how in broken(b"x" * 99)]


@pytest.mark.parametrize(("name", "how"), BROKEN, ids=lambda part: part)
def test_broken_files(name: str, how: str, refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(broken(FILES[name])[how])
    picture = name.startswith("photo")
    words = ["cut", path, "--grid", "2"] if picture else ["fracture", path, "--pieces", "2"]
    line = refused([*words, "--out", tmp_path / "out"], maybe=how in HARMLESS)
    assert not line or name in line


def _npy(head: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00v\x00" + head.ljust(117) + b"\n"


VERSION = {"version": "2.0"}
TRIANGLE = "v {} 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\n"
MESHES = {
    "nan.obj": TRIANGLE.format("nan").encode(),
    "inf.obj": TRIANGLE.format("inf").encode(),
    "far.obj": TRIANGLE.format("1e300").encode(),
    "beyond.obj": TRIANGLE.replace("3\n", "9\n").format("1").encode(),
    "flat.obj": b"v 0 0 0\nv 1 1 1\nv 2 2 2\nf 1 2 3\n",
    "long line.obj": b"v 1 2 3 " + b"4 " * 200_000 + b"\n",
    "material.obj": b"mtllib /etc/passwd\n" + TRIANGLE.format("1").encode(),
    "folder.obj": b"mtllib ../../../../dev/zero\n" + TRIANGLE.format("1").encode(),
    "few.xyz": b"1 2 3\n" * 30,
    "words.xyz": b"one two three\n" * 30,
    "two.xyz": b"1 2\n" * 30,
    "uneven.xyz": b"1 2 3\n1 2\n" * 30,
    "many.off": b"OFF\n3000000000 3000000000 0\n0 0 0\n",
    "negative.off": b"OFF\n-3 1 0\n0 0 0\n",
    "many.stl": bytes(80) + (2**32 - 1).to_bytes(4, "little") + bytes(50),
    "declared.ply": b"ply\nformat ascii 1.0\nelement vertex 3000000000\nend_header\n",
    "negative.ply": b"ply\nformat ascii 1.0\nelement vertex -3\nproperty float x\nend_header\n",
    "list.ply": b"ply\nformat binary_little_endian 1.0\nelement face 9\nproperty list uint int x\nend_header\n"
    + b"\xff" * 90,
    "none.gltf": b"{}",
    "deep.gltf": b"[" * 100_000,
    **{
        f"uri{number}.gltf": json.dumps({"asset": VERSION, "buffers": [{"uri": uri, "byteLength": 9}]}).encode()
        for number, uri in enumerate(("/dev/zero", "http://x"))
    },
    "nodes.glb": glb({"asset": VERSION, "nodes": [{"mesh": 0}] * 3000}),
    "loop.glb": glb({"asset": VERSION, "nodes": [{"children": [0]}], "scenes": [{"nodes": [0]}]}),
    "list.glb": glb([[[]]]),
    "words.glb": glb({"accessors": "x", "nodes": 3}),
    "objects.npy": _npy(b"{'descr': '|O', 'fortran_order': False, 'shape': (3, 3), }") + b"x",
    "many.npy": _npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (3000000000, 3), }"),
    "four.npy": _npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (4, 4), }") + bytes(128),
}


@pytest.mark.parametrize("name", MESHES)
def test_hostile_meshes(name: str, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "fragments").mkdir()
    for number in range(2):
        (tmp_path / "fragments" / f"{number} {name}").write_bytes(MESHES[name])
    named = b"mtllib" in MESHES[name][:40]  # what is not there leaves the triangles
    refused(["solve", tmp_path / "fragments", *QUICK, "--out", tmp_path / "out"], maybe=named)


def hostile_archives() -> dict[str, bytes]:
    plain = {"a.png": b"x" * 99, "b.png": b"y" * 99}
    found = broken(zipped(plain))
    outside = ("../a.png", "/a.png", "a/../../b.png", "C:\\a.png", "a\\b.png")
    for name in (*outside, "", ".", "a\0b.png", "\u202ea.png", "x" * 300):
        changed = zipfile.ZipInfo("q" * len(name.encode()))
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr(changed, b"x")
            archive.filelist[0].filename = name
        found[f"name {name!a}"[:20]] = content.getvalue()
    for method in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED):
        content = bytearray(zipped({"a.png": bytes(range(200))}, method))
        content[45:80] = b"\xff" * 35
        found[f"method {method}"] = bytes(content)
    found["bomb"] = zipped({"a.png": bytes(30_000_000)})
    found["many"] = zipped({f"{number}.png": b"" for number in range(LIMITS.archive_entries + 1)})
    found["nothing"] = zipped({})
    found["a zip"] = zipped({"a.zip": zipped(plain)})
    found["texts"] = zipped({"a.txt": b"x"})
    locked = bytearray(zipped(plain))
    locked[6] |= 1
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    found["locked"] = bytes(locked)
    return found


ARCHIVES = hostile_archives()


@pytest.mark.parametrize("how", ARCHIVES)
def test_archives(how: str, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(ARCHIVES[how])
    refused(["solve", tmp_path / "x.zip", *QUICK, "--grid", "1x2", "--out", tmp_path / "out"])


BAD_VALUES: dict[str, Any] = {
    "null": None,
    "minus": -1,
    "zero": 0,
    "many": 10**18,
    "large": 1e300,
    "word": "x",
    "path": "../../etc/passwd",
    "list": [],
    "record": {},
    "nested": [[[[]]]],
    "true": True,
    "strange": "\u202e\n\t",
}
DOCUMENTS = {
    ("squares", "puzzle.json"): ("schema", "kind", "rows", "cols", "piece_size", "pieces"),
    ("squares", "truth.json"): ("schema", "kind", "rows", "pieces"),
    ("outlines", "puzzle.json"): ("kind", "pieces"),
    ("outlines", "truth.json"): ("pieces",),
    ("fragments", "puzzle.json"): ("kind", "unit", "pieces"),
    ("fragments", "truth.json"): ("pieces",),
}
FIELDS = [(*document, key, value) for document, keys in DOCUMENTS.items() for key in keys for value in BAD_VALUES]


@pytest.mark.parametrize(("kind", "document", "key", "value"), FIELDS)
def test_documents(
    kind: str, document: str, key: str, value: str, refused: Refused, given: Given, tmp_path: Path
) -> None:
    shutil.copytree(given.folder / kind, tmp_path / "puzzle")
    path = tmp_path / "puzzle" / document
    path.write_text(json.dumps({**json.loads(path.read_text()), key: BAD_VALUES[value]}))
    line = refused(["solve", tmp_path / "puzzle", *QUICK, "--out", tmp_path / "out"])
    assert document in line


KINDS = ("squares", "outlines", "fragments")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", ["file", "matrix", "confidence", "locked", "object"])
@pytest.mark.parametrize("value", BAD_VALUES)
def test_locks(kind: str, key: str, value: str, refused: Refused, given: Given, tmp_path: Path) -> None:
    document = json.loads((given.folder / f"{kind}-solved" / "assembly.json").read_text())
    document["pieces"][0] |= {"locked": True, key: BAD_VALUES[value]}
    (tmp_path / "assembly.json").write_text(json.dumps(document))
    words = ["solve", given.folder / kind, *QUICK, "--lock", tmp_path / "assembly.json", "--out", tmp_path / "out"]
    harmless = {"confidence": ("zero",), "object": ("null", "zero", "many"), "locked": ("true",)}
    refused(words, maybe=value in harmless.get(key, ()))


@pytest.mark.parametrize("number", [1e300, -1e14, 1e9, "nan", "9" * 400, 0])
@pytest.mark.parametrize("kind", KINDS)
def test_matrices(kind: str, number: Any, refused: Refused, given: Given, tmp_path: Path) -> None:
    document = json.loads((given.folder / f"{kind}-solved" / "assembly.json").read_text())
    document["pieces"][0]["locked"] = True
    document["pieces"][0]["matrix"][0] = [1, 0, 0, 12345678]
    text = json.dumps(document).replace("12345678", str(number).replace("nan", "NaN"))
    (tmp_path / "assembly.json").write_text(text)
    words = ["solve", given.folder / kind, "--solver", "random", "--lock", tmp_path / "assembly.json"]
    refused([*words, "--out", tmp_path / "out"], maybe=True)


INPUTS = ("nowhere", "pipe", "/dev/zero", "/dev/full", "/dev/null", "empty", "circle", "\x00", "\udcff")


@pytest.mark.parametrize("name", [*INPUTS, "x" * 300, "", "a folder"], ids=ascii)
@pytest.mark.parametrize(
    "words",
    [
        "cut ? --grid 2 --out out",
        "cut ? --shape tabs --pieces 4 --out out",
        "cut ? --from-photo --out out",
        "fracture ? --out out",
        "solve ? --solver random --no-pictures --out out",
        "solve SQUARES --lock ? --solver random --no-pictures --out out",
        "solve SQUARES --model ? --out out",
        "evaluate --data ? --solver random",
        "evaluate --data PICTURES --model ?",
        "train jigsaw --data.folders ? --out out",
        "train fragments --data.meshes ? --out out",
        "train jigsaw --resume --out ?",
        "serve ?",
    ],
    ids=lambda words: words[:24],
)
def test_inputs_that_are_none(words: str, name: str, refused: Refused, given: Given, tmp_path: Path) -> None:
    place = name if name in ("", "\x00") else str(tmp_path / name)
    for folder in ("empty", "a folder"):
        (tmp_path / folder).mkdir()
    (tmp_path / "a folder" / "notes.txt").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    if name == "" and ("--model" in words or "--resume" in words):
        return  # those that are usual
    refused(given.words(words, **{"?": place}))


PLACES = (".", "/", "..", "file", "file/below", "pipe", "full", "/dev/full", "/dev/null", "/proc/x", "\x00", "circle")


@pytest.mark.parametrize("name", [*PLACES, "x" * 300], ids=ascii)
@pytest.mark.parametrize(
    "words",
    [
        "cut PHOTO --grid 2 --out ?",
        "fracture SOLID --pieces 2 --out ?",
        "solve SQUARES --solver random --no-pictures --out ?",
        "demo --out ?",
        "train jigsaw --data.folders PICTURES --out ?",
        "evaluate --data PICTURES --solver random --grid 2 --json ?",
        "evaluate --data PICTURES --solver random --grid 2 --report ?",
        "evaluate --data PICTURES --solver random --grid 2 --scores ?",
    ],
    ids=lambda words: " ".join([words.split()[0], words.split()[-2]]),
)
def test_places_that_cannot_be_written(words: str, name: str, refused: Refused, given: Given, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("precious")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    place = name if name[:1] in ("/", "\x00", ".") else str(tmp_path / name)
    refused(given.words(words, **{"?": place}))


CONFIGS: dict[str, Any] = {
    "kind": "Upright",
    "layers": 100_000,
    "times": 2_000_000_000,
    "width": 10**9,
    "heads": 7,
    "backbone": "nope",
    "space": "so3",
    "features": -1,
    "dropped_edges": 2.0,
    "edge_model": "/etc",
    "unknown": 1,
    "votes": "yes",
}


@pytest.mark.parametrize("key", CONFIGS)
def test_model_configurations(key: str, refused: Refused, given: Given, tmp_path: Path) -> None:
    shutil.copytree(given.folder / "model", tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: CONFIGS[key]}))
    refused(given.words("solve SQUARES --solver diffusion --model ? --out out", **{"?": tmp_path / "model"}))


@pytest.mark.parametrize("how", [*broken(b"x" * 99), "NaN", "infinite", "fewer", "others", "other shapes", "pickled"])
def test_weights(how: str, refused: Refused, given: Given, tmp_path: Path) -> None:
    shutil.copytree(given.folder / "model", tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    weights = load(path.read_bytes())
    name = next(name for name, value in weights.items() if value.is_floating_point() and value.numel() > 9)
    if how == "pickled":
        torch.save(weights, path)
    elif how in ("NaN", "infinite"):
        weights[name].view(-1)[3] = float("nan" if how == "NaN" else "inf")
        save_file(weights, path)
    elif how in ("fewer", "others", "other shapes"):
        changed = weights.pop(name)
        weights |= {"others": {"x": changed}, "other shapes": {name: changed.view(-1)[:5].clone()}}.get(how, {})
        save_file(weights, path)
    else:
        path.write_bytes(broken(path.read_bytes())[how])
    words = "solve SQUARES --solver diffusion --model ? --samples 1 --steps 1 --out out"
    refused(given.words(words, **{"?": tmp_path / "model"}), maybe=how in ("flipped", "hole"))


@pytest.mark.parametrize("how", [*broken(b"x" * 99), "a list", "no weights", "other numbers"])
def test_checkpoints(how: str, refused: Refused, given: Given, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    path, content = tmp_path / "out" / "checkpoint.pt", io.BytesIO()
    whole = {"step": 1, "minutes": 0.1, "best": 1.0, "weights": {}, "average": {}, "optimizer": {}}
    torch.save(whole, content)
    other = {"a list": [1], "no weights": {"step": 1}, "other numbers": {**whole, "step": "x", "minutes": None}}
    if how in other:
        torch.save(other[how], path)
    else:
        path.write_bytes(broken(content.getvalue())[how])
    words = ["train", "jigsaw", "--data.folders", given.folder / "pictures", "--out", tmp_path / "out", "--resume"]
    small = ["--data.grids", "2", "2", "--data.favourite", "2", "--training.pieces", "8", "--model.width", "32"]
    assert "checkpoint" in refused([*words, *small])


JUNK = {
    "out/config.json": ("", "{}", "[]", "null", '{"model": 1}', "[" * 10_000, '{"model": {"layers": 100000}}'),
    "puzzle/truth.csv": (
        *("x", "file,row,col\n", "file,x,y\n0.png,nan,1\n", "a,b\n1,2\n", "\xff"),
        "file,row,col\n../0.png,1,1\n",
    ),
    "scores": ("precious", '{"puzzle": 1}\n', "[" * 9999, '{"puzzle": {"picture": "x"}, "score": {"x": 1}}\n'),
}
READERS = {
    "out/config.json": "train jigsaw --data.folders PICTURES --out HOME/out --resume",
    "puzzle/truth.csv": "evaluate --data HOME/puzzle --solver random",
    "scores": "evaluate --data PICTURES --solver random --grid 2 --scores HOME/scores",
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in JUNK.items() for text in texts])
def test_configurations_of_runs_lists_of_places_and_scores(
    name: str, text: str, refused: Refused, given: Given, tmp_path: Path
) -> None:
    shutil.copytree(given.folder / "outlines" / "pieces", tmp_path / "puzzle" / "pieces")
    (tmp_path / "out").mkdir()
    torch.save({}, tmp_path / "out" / "checkpoint.pt")
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    line = refused(given.words(READERS[name].replace("HOME", str(tmp_path))))
    assert "config.json" in line or name != "out/config.json"
