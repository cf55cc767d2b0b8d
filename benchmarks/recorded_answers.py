"""Whether a change of the code leaves every answer as it was, byte for byte.

Makes puzzles of pictures and of broken solids, solves each by the command line, and keeps what `solve` answered:

    python benchmarks/recorded_answers.py record FOLDER     # before the change
    python benchmarks/recorded_answers.py check FOLDER      # after it, as often as you like

`record` writes FOLDER/CASE.json, the assembly.json of that case; FOLDER/inputs, the puzzles; FOLDER/written, what else
`solve` wrote where it was asked for a folder; and FOLDER/SHA256SUMS, which `sha256sum --check` reads too. `check` makes
the puzzles anew and compares them with those kept; it then solves those kept, so that answers can be compared even if
cutting has changed. It ends with 1 if anything differs, and names the first piece that does. `--only TEXT` takes
just the cases with this text in their names. All of them take about five minutes.

Nothing but the command line is used, in this process and on one thread, so that sums are always added up in one order.
Answers are the same only on one machine with one set of libraries: compare trees, not computers. To run another tree
than the one installed: PYTHONPATH=OTHER/src python benchmarks/recorded_answers.py check FOLDER.
"""

from __future__ import annotations

import os

# Libraries look at these when they are loaded.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import contextlib
import hashlib
import io
import json
import runpy
import shutil
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import skimage.data
import trimesh
from PIL import Image

SUMS = "SHA256SUMS"
INPUTS = "inputs"
WRITTEN = "written"
# It tells how long solving took.
TIMED = "report.html"
CLOUD_POINTS = 30_000


@dataclass(frozen=True)
class Case:
    """One run of `solve`: what it is given, relative to the folder of inputs, and with which options.

    With `written`, it writes a folder, whose other files are compared as well.
    """

    name: str
    source: str
    options: str = ""
    written: bool = False


CASES = (
    # Pictures of every size, with the solver that is used if nothing is said.
    Case("squares-3x3", "squares-3x3"),
    Case("squares-4x6", "squares-4x6"),
    Case("squares-6x6", "squares-6x6", written=True),
    Case("squares-8x8", "squares-8x8"),
    Case("squares-12x12", "squares-12x12"),
    Case("squares-20x20", "squares-20x20"),
    Case("squares-30x30", "squares-30x30"),
    # The other solvers, models and numbers.
    Case("squares-6x6-diffusion", "squares-6x6", "--solver diffusion"),
    Case("squares-6x6-gallagher", "squares-6x6", "--solver gallagher"),
    Case("squares-6x6-yu", "squares-6x6", "--solver yu"),
    Case("squares-6x6-huroyan", "squares-6x6", "--solver huroyan"),
    Case("squares-6x6-identity", "squares-6x6", "--solver identity"),
    Case("squares-6x6-random", "squares-6x6", "--solver random --seed 3"),
    Case("squares-12x12-diffusion", "squares-12x12", "--solver diffusion --samples 2"),
    Case("squares-12x12-gallagher", "squares-12x12", "--solver gallagher"),
    Case("squares-12x12-yu", "squares-12x12", "--solver yu"),
    Case("squares-12x12-huroyan", "squares-12x12", "--solver huroyan"),
    Case("squares-30x30-diffusion", "squares-30x30", "--solver diffusion --samples 1 --steps 5"),
    Case("squares-6x6-paper-form", "squares-6x6", "--solver diffusion --model jigsaw-paper-form"),
    # What makes it harder.
    Case("missing-hybrid", "missing-6x6"),
    Case("missing-diffusion", "missing-6x6", "--solver diffusion"),
    Case("missing-gallagher", "missing-6x6", "--solver gallagher"),
    Case("missing-yu", "missing-6x6", "--solver yu"),
    Case("missing-12x12-hybrid", "missing-12x12"),
    Case("eroded-hybrid", "eroded-8x8"),
    Case("eroded-gallagher", "eroded-8x8", "--solver gallagher"),
    # So hard that the answer hangs on seed, samples and model.
    Case("hard-hybrid", "eroded-missing-8x8"),
    Case("hard-hybrid-seed", "eroded-missing-8x8", "--seed 7"),
    Case("hard-hybrid-one-sample", "eroded-missing-8x8", "--samples 1"),
    Case("hard-hybrid-paper-form", "eroded-missing-8x8", "--model jigsaw-paper-form --samples 2"),
    Case("hard-diffusion", "eroded-missing-8x8", "--solver diffusion"),
    Case("hard-diffusion-seed", "eroded-missing-8x8", "--solver diffusion --seed 7"),
    Case("hard-diffusion-samples", "eroded-missing-8x8", "--solver diffusion --samples 3 --steps 10"),
    Case("grey-hybrid", "grey-7x5"),
    Case("unturned-hybrid", "unturned-6x6"),
    Case("unturned-diffusion", "unturned-6x6", "--solver diffusion"),
    Case("locked-hybrid", "squares-6x6", "--lock squares-6x6-locked.json"),
    Case("locked-diffusion", "squares-6x6", "--lock squares-6x6-locked.json --solver diffusion"),
    Case("locked-gallagher", "squares-6x6", "--lock squares-6x6-locked.json --solver gallagher"),
    Case("locked-yu", "squares-6x6", "--lock squares-6x6-locked.json --solver yu"),
    Case("locked-20x20-hybrid", "squares-20x20", "--lock squares-20x20-locked.json"),
    # Other ways to hand in pieces.
    Case("unknown-grid-hybrid", "loose-5x4"),
    Case("unknown-grid-gallagher", "loose-5x4", "--solver gallagher"),
    Case("unknown-grid-zip", "loose-5x4.zip"),
    Case("shuffled-picture", "shuffled-6x6.png", "--grid 6x6"),
    Case("extra-hybrid", "extra-5x5", "--extra --grid 5x5"),
    Case("extra-yu", "extra-5x5", "--extra --grid 5x5 --solver yu"),
    Case("photographed", "photographed-3x3"),
    # Broken solids of every size.
    Case("fragments-2-wine-glass", "fragments-2-wine-glass"),
    Case("fragments-3-bowl", "fragments-3-bowl", written=True),
    Case("fragments-5-mug", "fragments-5-mug"),
    Case("fragments-7-vase", "fragments-7-vase"),
    Case("fragments-8-plate", "fragments-8-plate"),
    Case("fragments-12-teapot", "fragments-12-teapot"),
    Case("fragments-6-statue-chips", "fragments-6-statue"),
    Case("fragments-missing-share", "fragments-missing"),
    Case("fragments-missing-files", "fragments-deleted"),
    # The other solvers.
    Case("fragments-5-mug-hybrid", "fragments-5-mug", "--solver hybrid"),
    Case("fragments-5-mug-diffusion", "fragments-5-mug", "--solver diffusion"),
    Case("fragments-5-mug-identity", "fragments-5-mug", "--solver identity"),
    Case("fragments-5-mug-random", "fragments-5-mug", "--solver random"),
    Case("fragments-8-plate-hybrid", "fragments-8-plate", "--solver hybrid --seed 5 --samples 2"),
    Case("fragments-12-teapot-diffusion", "fragments-12-teapot", "--solver diffusion --samples 3"),
    Case("fragments-deleted-hybrid", "fragments-deleted", "--solver hybrid"),
    # Other files, locks and objects.
    Case("fragments-4-cup-stl", "fragments-4-cup"),
    Case("clouds-xyz", "clouds-xyz"),
    Case("clouds-xyz-normals", "clouds-xyz-normals"),
    Case("clouds-ply", "clouds-ply"),
    Case("clouds-ply-hybrid", "clouds-ply", "--solver hybrid"),
    Case("fragments-locked", "fragments-5-mug", "--lock fragments-5-mug-locked.json"),
    Case("fragments-locked-hybrid", "fragments-5-mug", "--lock fragments-5-mug-locked.json --solver hybrid"),
    Case("fragments-locked-diffusion", "fragments-5-mug", "--lock fragments-5-mug-locked.json --solver diffusion"),
    Case("two-objects", "two-objects", "--objects auto"),
    # Flat pieces of every family, with both solvers, losses, locks, and from a photograph.
    Case("outlines-tabs-48", "tabs-48", written=True),
    Case("outlines-tabs-150", "tabs-150"),
    Case("outlines-tabs-missing", "tabs-missing"),
    Case("outlines-tabs-locked", "tabs-48", "--lock tabs-48-locked.json"),
    Case("outlines-tabs-diffusion", "tabs-24", "--solver diffusion"),
    Case("outlines-torn-20", "torn-20"),
    Case("outlines-shards-30", "shards-30"),
    Case("outlines-shards-missing", "shards-missing"),
    Case("outlines-shards-diffusion", "shards-15", "--solver diffusion"),
    Case("outlines-shards-two", "shards-two", "--objects auto"),
    Case("outlines-strips-24", "strips-24"),
    Case("outlines-photographed", "pictures/tabs-table.png"),
)


def main() -> int:
    """Record or check; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("work", choices=("record", "check"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", metavar="TEXT", help="just the cases with this text in their names")
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in case.name]
    if not cases:
        parser.error(f"no case has {options.only!r} in its name")
    began = time.monotonic()
    folder = options.folder.resolve()
    if options.work == "record":
        differing = 0
        record(folder, cases)
    else:
        differing = check(folder, cases)
    print(f"{len(cases)} cases in {time.monotonic() - began:.0f} s")
    return 1 if differing else 0


def record(folder: Path, cases: list[Case]) -> None:
    """Make the puzzles, solve them, and keep both."""
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder}: holds something already; remove it, or choose another folder")
    make_inputs(folder / INPUTS)
    for case in cases:
        began = time.monotonic()
        content = answer(case, folder / INPUTS, folder / WRITTEN / case.name)
        (folder / f"{case.name}.json").write_bytes(content)
        print(f"{case.name:<34} {digest(content)[:16]} {time.monotonic() - began:6.1f} s", flush=True)
    sums = "".join(f"{digest((folder / name).read_bytes())}  {name}\n" for name in files_below(folder))
    (folder / SUMS).write_text(sums)


def check(folder: Path, cases: list[Case]) -> int:
    """Make the puzzles again and solve those kept; the number of what differs."""
    damaged = damage(folder)
    if damaged:
        raise SystemExit(f"{folder}: was changed after it was recorded, first in {damaged[0]}; record it anew")
    with tempfile.TemporaryDirectory() as place:
        scratch = Path(place)
        made = scratch / INPUTS
        make_inputs(made)
        unlike = differing_files(folder / INPUTS, made)
        print(f"{'puzzles made again':<34} {'same' if not unlike else 'differs: ' + briefly(unlike)}", flush=True)
        wrong = ["puzzles made again"] if unlike else []
        for case in cases:
            began = time.monotonic()
            verdict = compared(case, folder, scratch / WRITTEN / case.name)
            wrong += [] if verdict == "same" else [case.name]
            print(f"{case.name:<34} {verdict:<16} {time.monotonic() - began:6.1f} s", flush=True)
    print(f"differs: {', '.join(wrong)}" if wrong else "all the same")
    return len(wrong)


def compared(case: Case, folder: Path, written: Path) -> str:
    """Solve again, and say "same" or what differs first."""
    kept = folder / f"{case.name}.json"
    if not kept.exists():
        return "differs: was not recorded"
    try:
        content = answer(case, folder / INPUTS, written)
    # Whatever goes wrong, the other cases are still of interest.
    except Exception as error:
        return f"differs: fails ({type(error).__name__}: {error})"
    if content != kept.read_bytes():
        return f"differs: {first_difference(kept.read_bytes(), content)}"
    unlike = differing_files(folder / WRITTEN / case.name, written) if case.written else []
    return f"differs: {briefly(unlike)}" if unlike else "same"


def answer(case: Case, inputs: Path, written: Path) -> bytes:
    """The assembly.json that `solve` gives; if a folder is asked for, its lasting files go to `written`."""
    out = ["--out", str(written)] if case.written else ["--out", "-"]
    if case.written:
        written.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(inputs):
        text = diffassemble("solve", case.source, *case.options.split(), *out)
    if not case.written:
        return text.encode()
    (written / TIMED).unlink()
    return (written / "assembly.json").read_bytes()


def diffassemble(*arguments: str) -> str:
    """Run the command in this process, as `python -m diffassemble` does; what it wrote to the standard output."""
    output, errors = io.StringIO(), io.StringIO()
    code: int | str | None = 0
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
        patch.object(sys, "argv", ["diffassemble", *arguments]),
    ):
        try:
            runpy.run_module("diffassemble", run_name="__main__", alter_sys=False)
        except SystemExit as end:
            code = end.code
    if code not in (0, None):
        raise RuntimeError(f"diffassemble {' '.join(arguments)} ended with {code}: {errors.getvalue().strip()}")
    return output.getvalue()


def first_difference(old: bytes, new: bytes) -> str:
    """The first field or piece of two assembly.json that differs, and how much of the rest."""
    before, after = json.loads(old), json.loads(new)
    for key in [*before, *(key for key in after if key not in before)]:
        if key != "pieces" and before.get(key) != after.get(key):
            return f"{key} was {before.get(key)!r}, is {after.get(key)!r}"
    if len(before["pieces"]) != len(after["pieces"]):
        return f"{len(before['pieces'])} pieces were placed, {len(after['pieces'])} are"
    pairs = list(zip(before["pieces"], after["pieces"], strict=True))
    unlike = [(was, now) for was, now in pairs if was != now]
    if not unlike:
        return "the same numbers are written in another way"
    was, now = unlike[0]
    fields = [key for key in [*was, *(key for key in now if key not in was)] if was.get(key) != now.get(key)]
    found = f"{was['file']}: {fields[0]} was {was.get(fields[0])}, is {now.get(fields[0])}"
    return f"{found} ({len(unlike)} of {len(pairs)} pieces differ)"


def damage(folder: Path) -> list[str]:
    """Files that are no longer as they were recorded."""
    try:
        lines = (folder / SUMS).read_text().splitlines()
    except OSError as error:
        raise SystemExit(f"{folder}: holds no recorded answers ({error.strerror})") from error
    sums = {name: known for known, name in (line.split("  ", 1) for line in lines)}
    return [
        name
        for name, known in sums.items()
        if not (folder / name).exists() or digest((folder / name).read_bytes()) != known
    ]


def differing_files(first: Path, second: Path) -> list[str]:
    """Names of the files that only one of two folders has, or that have another content."""
    names = sorted({*files_below(first), *files_below(second)})
    return [name for name in names if _content(first / name) != _content(second / name)]


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def files_below(folder: Path) -> list[str]:
    """All files of a folder and its folders, by their paths from there."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def briefly(names: list[str]) -> str:
    """The first names of a list, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more files" if len(names) > 3 else "")


def digest(content: bytes) -> str:
    """The SHA-256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def make_inputs(folder: Path) -> None:
    """Everything that the cases are solved from."""
    folder.mkdir(parents=True)
    with contextlib.chdir(folder):
        _make_pictures()
        _make_squares()
        _make_loose_squares()
        _make_photograph()
        _make_fragments()
        _make_loose_fragments()
        _make_outlines()


def _make_pictures() -> None:
    Path("pictures").mkdir()
    for name in ("astronaut", "coffee", "chelsea", "rocket", "camera"):
        Image.fromarray(getattr(skimage.data, name)()).save(f"pictures/{name}.png")


def _make_squares() -> None:
    """Puzzle folders as `cut` writes them, and documents that lock some pieces."""
    _cut("astronaut", "squares-3x3", "--grid 3x3")
    _cut("coffee", "squares-4x6", "--grid 4x6 --seed 1")
    _cut("chelsea", "squares-6x6", "--grid 6x6 --seed 2")
    _cut("rocket", "squares-8x8", "--grid 8x8 --size 40 --seed 3")
    _cut("coffee", "squares-12x12", "--grid 12x12 --seed 4")
    _cut("coffee", "squares-20x20", "--grid 20x20 --seed 5")
    _cut("coffee", "squares-30x30", "--grid 30x30 --size 20 --seed 6")
    _cut("astronaut", "missing-6x6", "--grid 6x6 --missing 0.3 --seed 7")
    _cut("coffee", "missing-12x12", "--grid 12x12 --missing 0.3 --seed 8")
    _cut("astronaut", "eroded-8x8", "--grid 8x8 --erode 2 --seed 9")
    _cut("chelsea", "eroded-missing-8x8", "--grid 8x8 --erode 2 --missing 0.3 --seed 10")
    _cut("camera", "grey-7x5", "--grid 7x5 --seed 11")
    _cut("rocket", "unturned-6x6", "--grid 6x6 --no-rotate --seed 12")
    _lock_squares("squares-6x6", every=4)
    _lock_squares("squares-20x20", every=10)


def _cut(picture: str, name: str, options: str) -> None:
    diffassemble("cut", f"pictures/{picture}.png", "--out", name, *options.split())


def _lock_squares(name: str, every: int) -> None:
    """An assembly.json with every so many pieces locked; the first of them has changed places with its successor."""
    truth = json.loads(Path(name, "truth.json").read_bytes())
    rows, cols = truth["rows"], truth["cols"]
    if rows != cols:
        raise ValueError("matrices are known for square boards only")
    records = truth["pieces"]
    first, second = ({key: record[key] for key in ("row", "col", "turn")} for record in records[:2])
    records[0].update(second)
    records[1].update(first)
    for index, record in enumerate(records):
        cosine, sine = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[record["turn"]]
        across, down = ((2 * record[key] + 1) / rows - 1 for key in ("col", "row"))
        upper = [[cosine, -sine, 0.0, across], [sine, cosine, 0.0, down]]
        record["matrix"] = [*upper, [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
        record["confidence"] = 1.0
        record["locked"] = index % every == 0
    _write_json(f"{name}-locked.json", {**truth, "solver": "hybrid", "pieces": records})


def _make_loose_squares() -> None:
    """Pieces that come without a puzzle.json: a folder, a zip file, one picture, and a folder with strangers in it."""
    _cut("coffee", "whole-5x4", "--grid 5x4 --size 64 --seed 13")
    _copy("whole-5x4", "loose-5x4")
    with zipfile.ZipFile("loose-5x4.zip", "w") as archive:
        for path in sorted(Path("loose-5x4").iterdir()):
            # A ZipInfo made by hand has always the same date.
            archive.writestr(zipfile.ZipInfo(path.name), path.read_bytes())
    _cut("rocket", "whole-6x6", "--grid 6x6 --size 48 --seed 14")
    pieces = np.stack([np.asarray(Image.open(path)) for path in sorted(Path("whole-6x6", "pieces").iterdir())])
    picture = pieces.reshape(6, 6, 48, 48, 3).swapaxes(1, 2).reshape(6 * 48, 6 * 48, 3)
    Image.fromarray(picture).save("shuffled-6x6.png")
    _cut("astronaut", "whole-5x5", "--grid 5x5 --size 64 --seed 15")
    _copy("whole-5x5", "extra-5x5")
    _copy("whole-5x4", "extra-5x5", "stranger_", most=4)


def _make_photograph() -> None:
    """Pieces that lie at any angle on a plain background, found by `cut --from-photo`."""
    random = np.random.default_rng(16)
    _cut("astronaut", "whole-3x3", "--grid 3x3 --size 100 --seed 16")
    scene = Image.new("RGB", (540, 540), (250, 250, 250))
    for index, path in enumerate(sorted(Path("whole-3x3", "pieces").iterdir())):
        angle = float(random.uniform(-30, 30))
        piece = Image.open(path).convert("RGBA").rotate(angle, Image.Resampling.BICUBIC, expand=True)
        middle = (180 * (index % 3) + 90 - piece.width // 2, 180 * (index // 3) + 90 - piece.height // 2)
        scene.paste(piece, middle, piece)
    scene.save("pictures/photograph.png")
    _cut("photograph", "photographed-3x3", "--from-photo --grid 3x3 --size 96")


def _make_outlines() -> None:
    """Puzzle folders of flat pieces as `cut` writes them, one with a document that locks pieces, and a photograph."""
    _cut("coffee", "tabs-48", "--shape tabs --pieces 48 --seed 20")
    _cut("rocket", "tabs-150", "--shape tabs --pieces 150 --seed 21")
    _cut("astronaut", "tabs-24", "--shape tabs --pieces 24 --seed 22")
    _cut("chelsea", "tabs-missing", "--shape tabs --pieces 40 --missing 0.2 --seed 23")
    _cut("astronaut", "torn-20", "--shape torn --pieces 20 --seed 24")
    _cut("coffee", "shards-30", "--shape shards --pieces 30 --seed 25")
    _cut("chelsea", "shards-missing", "--shape shards --pieces 20 --missing 0.2 --seed 26")
    _cut("rocket", "shards-15", "--shape shards --pieces 15 --seed 27")
    _cut("camera", "strips-24", "--shape strips --pieces 24 --seed 28")
    _cut("astronaut", "shards-a", "--shape shards --pieces 10 --size 90 --seed 29")
    _cut("coffee", "shards-b", "--shape shards --pieces 10 --size 90 --seed 30")
    _copy("shards-a", "shards-two")
    _copy("shards-b", "shards-two", "other_")
    document = json.loads(Path("tabs-48", "truth.json").read_bytes())
    for index, record in enumerate(document["pieces"]):
        record["confidence"] = 1.0
        record["locked"] = index % 5 == 0
    _write_json("tabs-48-locked.json", {**document, "solver": "grow"})
    scene = Image.new("RGB", (1500, 1000), (40, 90, 160))
    for index, path in enumerate(sorted(Path("tabs-24", "pieces").iterdir())):
        piece = Image.open(path).convert("RGBA")
        scene.paste(piece, (30 + 245 * (index % 6), 30 + 240 * (index // 6)), piece)
    scene.save("pictures/tabs-table.png")


def _make_fragments() -> None:
    """Puzzle folders as `fracture` writes them, and a document that locks two fragments."""
    _fracture("wine-glass", "fragments-2-wine-glass", "--pieces 2")
    _fracture("bowl", "fragments-3-bowl", "--pieces 3 --seed 1")
    _fracture("mug", "fragments-5-mug", "--pieces 5 --seed 2")
    _fracture("vase", "fragments-7-vase", "--pieces 7 --seed 3")
    _fracture("plate", "fragments-8-plate", "--pieces 8 --seed 4")
    _fracture("teapot", "fragments-12-teapot", "--pieces 12 --seed 5")
    _fracture("statue", "fragments-6-statue", "--pieces 6 --chips 0.3 --seed 6 --format obj")
    _fracture("bottle", "fragments-missing", "--pieces 9 --missing 0.25 --seed 7 --format glb")
    _fracture("cup", "fragments-4-cup", "--pieces 4 --seed 8 --format stl")
    document = json.loads(Path("fragments-5-mug", "truth.json").read_bytes())
    for index, record in enumerate(document["pieces"]):
        record["confidence"] = 1.0
        record["locked"] = index < 2
    # The second stands a little off.
    document["pieces"][1]["matrix"][0][3] += 0.05
    _write_json("fragments-5-mug-locked.json", {**document, "solver": "mend", "unit": 1.0})


def _fracture(solid: str, name: str, options: str) -> None:
    diffassemble("fracture", solid, "--out", name, *options.split())


def _make_loose_fragments() -> None:
    """Fragments without a puzzle.json: some lost, two objects in one folder, and clouds of points."""
    _copy("fragments-7-vase", "fragments-deleted", most=5)
    _copy("fragments-3-bowl", "two-objects", "first_")
    _copy("fragments-5-mug", "two-objects", "second_")
    for name in ("clouds-xyz", "clouds-xyz-normals", "clouds-ply"):
        Path(name).mkdir()
    for index, path in enumerate(sorted(Path("fragments-3-bowl", "pieces").iterdir())):
        mesh: Any = trimesh.load(path)
        points, faces = trimesh.sample.sample_surface(mesh, CLOUD_POINTS, seed=index)
        np.savetxt(f"clouds-xyz/{path.stem}.xyz", points, "%.7g")
        both = np.hstack([points, mesh.face_normals[faces]])
        np.savetxt(f"clouds-xyz-normals/{path.stem}.xyz", both, "%.7g")
        _write_ply_cloud(Path("clouds-ply", f"{path.stem}.ply"), both)


def _write_ply_cloud(path: Path, rows: np.ndarray) -> None:
    """Points with normals, as scanners' programs write them."""
    names = ("x", "y", "z", "nx", "ny", "nz")
    properties = "".join(f"property float {name}\n" for name in names)
    head = f"ply\nformat binary_little_endian 1.0\nelement vertex {len(rows)}\n{properties}end_header\n"
    path.write_bytes(head.encode() + rows.astype("<f4").tobytes())


def _copy(puzzle: str, folder: str, prefix: str = "", most: int | None = None) -> None:
    """The pieces of a puzzle folder, or the first of them, in a folder of no more than pieces."""
    Path(folder).mkdir(exist_ok=True)
    for path in sorted(Path(puzzle, "pieces").iterdir())[:most]:
        shutil.copy(path, Path(folder, prefix + path.name))


def _write_json(path: str, document: dict[str, Any]) -> None:
    Path(path).write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
