"""Measures what docs/results.toml lists, and renders docs/RESULTS.md and the table in README.md from what was measured.

    python tools/results.py run [--class minutes] [--only NAME …] [--data DIR] [--force]    # measures, then renders
    python tools/results.py render                                                          # renders only

Each entry is one run of `diffassemble evaluate`; its rows go to docs/results/NAME.json with the machine, the commit and
hashes of the weights and of the source files that figures of its kind depend on. Entries whose hashes still fit are
fresh, and are left alone without --force. A figure whose hashes differ is marked as stale when it is rendered.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from diffassemble.evaluation.metrics import wilson_interval

ROOT = Path(__file__).resolve().parents[1]
LIST, FOUND = ROOT / "docs" / "results.toml", ROOT / "docs" / "results"
PAGE, README = ROOT / "docs" / "RESULTS.md", ROOT / "README.md"
PACKAGE = ROOT / "src" / "diffassemble"
QUOTED = ROOT / "src" / "diffassemble_research" / "quoted.toml"
MARKERS = ("<!-- results -->", "<!-- /results -->")
NAMES = {"rmse_r": "RMSE(R), °", "rmse_t": "RMSE(T) × 100", "part_accuracy": "part accuracy, %"}
STALE = "⚠ stale"
SAMPLES = ("astronaut.png", "coffee.png")
ENTRY = ("kind", "shows", "command", "seed", "puzzles", "data", "class")


class Kind(NamedTuple):
    """How figures of a kind of pieces are shown: `columns` are headings and figures, `headline` is README.md's."""

    title: str
    default: str
    headline: str
    columns: dict[str, str]


KINDS = {
    "squares": Kind(
        "Pieces on a grid",
        "hybrid",
        "accuracy_free",
        {"right, %": "accuracy", "right at the best turn of the whole, %": "accuracy_free"},
    ),
    "outlines": Kind(
        "Flat pieces of any outline", "grow", "accuracy", {"right, %": "accuracy", "neighbours right, %": "neighbours"}
    ),
    "fragments": Kind(
        "Broken objects",
        "mend",
        "part_accuracy",
        {"parts in place, %": "part_accuracy", "RMSE(R), °": "rmse_r", "RMSE(T) × 100": "rmse_t"},
    ),
}
# What a row was measured on: its fields, and how each is written if it is not 0 or empty.
CONDITIONS = {
    **{"data": "{}", "grid": "{}", "shape": "{}", "missing": "{:.0%} missing", "erode": "{} px lost"},
    **{"noise": "{:.1%} noise", "wear": "{:.1%} worn", "points": "{} points", "points_each": "{} points a piece"},
    **{"anchor": "anchor {}"},
}


def entries() -> dict[str, dict[str, Any]]:
    """All entries by name, each with the weights and the source files of its kind."""
    listed = tomllib.loads(LIST.read_text())
    kinds = {name: listed["kinds"][entry["kind"]] for name, entry in listed["entries"].items()}
    return {
        name: {**entry, **kinds[name], "weights": [*kinds[name]["weights"], *entry.get("weights", [])]}
        for name, entry in listed["entries"].items()
    }


def digest(parts: Sequence[str]) -> str:
    """The first 12 hexadecimal digits of the SHA-256 of all parts."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


@cache
def hash_weights(names: tuple[str, ...]) -> str:
    """Of the bundled weights with these names, files or folders; texts about them do not count."""
    files = [
        path
        for name in names
        for path in _files(PACKAGE / "weights" / name)
        if path.suffix in (".safetensors", ".json")
    ]
    return digest([f"{path.relative_to(PACKAGE)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files])


@cache
def hash_code(names: tuple[str, ...]) -> str:
    """Of the source files with these names, files or packages; comments, docstrings and layout do not count."""
    files = [path for name in names for path in _files(PACKAGE / name) if path.suffix == ".py"]
    return digest([" ".join(canonical(ast.parse(path.read_text()))) for path in files])


def _files(path: Path) -> list[Path]:
    return sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]


def canonical(node: ast.AST) -> Iterator[str]:
    """A syntax tree as words, the same in every version of Python, without docstrings."""
    yield type(node).__name__
    for name, value in ast.iter_fields(node):
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
                continue
            if isinstance(one, ast.AST):
                yield from (name, "(", *canonical(one), ")")
            elif one is not None and name not in ("kind", "type_comment"):
                yield f"{name}={one!r}"


def is_stale(result: Mapping[str, Any], entry: Mapping[str, Any] | None) -> bool:
    """Whether weights, code or the entry itself changed since it was measured."""
    if entry is None or any(result["entry"].get(key) != entry.get(key) for key in ("command", "seed", "puzzles")):
        return True
    now = {"weights": hash_weights(tuple(entry["weights"])), "code": hash_code(tuple(entry["code"]))}
    return any(result[name] != value for name, value in now.items())


def results() -> dict[str, dict[str, Any]]:
    """What was measured, by name, in the order of the list."""
    order = list(entries())
    files = sorted(FOUND.glob("*.json"), key=lambda path: (order.index(path.stem) if path.stem in order else 99, path))
    return {path.stem: json.loads(path.read_text()) for path in files}


def words_of(entry: Mapping[str, Any]) -> list[str]:
    """The command of an entry with its seed and number of puzzles, folders still as {data}."""
    count = entry.get("puzzles")
    limits = [] if count is None else ["--limit", str(count), "--puzzles", str(count)]
    return ["diffassemble", *shlex.split(entry["command"]), *limits, "--seed", str(entry["seed"])]


def measure(name: str, entry: Mapping[str, Any], data: Path) -> None:
    """Run an entry and write what it found."""
    with tempfile.TemporaryDirectory() as folder:
        samples, rows = Path(folder) / "skimage" / "samples", Path(folder) / "rows.json"
        copy_samples(samples)
        words = [word.replace("{data}", str(data)).replace("{samples}", str(samples)) for word in words_of(entry)]
        began = time.monotonic()
        subprocess.run([sys.executable, "-m", *words, "--json", str(rows)], check=True, env=environment())
        seconds = time.monotonic() - began
        found = json.loads(rows.read_text())
    kept = [{key: value for key, value in row.items() if key not in ("parts", "peak_mb")} for row in found]
    content = {
        "entry": {key: entry[key] for key in ENTRY if key in entry},
        "rows": kept,
        "seconds": round(seconds, 1),
        "machine": {"processor": processor(), "cores": os.cpu_count(), "python": platform.python_version()},
        "commit": commit(),
        "weights": hash_weights(tuple(entry["weights"])),
        "code": hash_code(tuple(entry["code"])),
    }
    FOUND.mkdir(exist_ok=True)
    (FOUND / f"{name}.json").write_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def environment() -> dict[str, str]:
    """One thread, and the package of this checkout."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}


def copy_samples(folder: Path) -> None:
    """Pictures that scikit-image brings along."""
    from importlib.resources import files

    folder.mkdir(parents=True)
    for name in SAMPLES:
        (folder / name).write_bytes((files("skimage.data") / name).read_bytes())


def processor() -> str:
    """The model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def commit() -> str:
    """The commit that is checked out; + behind it if the source differs from that."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    changed = subprocess.run(
        ["git", "status", "--porcelain", "src"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


def share(right: int, count: int) -> str:
    """Percent with its 95 % interval."""
    if not count:
        return "–"
    low, high = wilson_interval(right, count)
    return f"{100 * right / count:.1f} ({low:.1f}–{high:.1f})"


CONFIRMED = ("precision at ≥ 0.9, %", "right of sure", "false confirmed joins")


def confirmed(row: Mapping[str, Any]) -> list[str]:
    """Precision of the pieces at confidence ≥ 0.9, their counts, and the false joins among them."""
    return [share(row["sure_right"], row["sure"]), f"{row['sure_right']} of {row['sure']}", str(row["false_joins"])]


def figure(row: Mapping[str, Any], name: str) -> str:
    """A figure with its 95 % interval."""
    low, high = row["intervals"][name]
    return f"{row[name]:.1f} ({low:.1f}–{high:.1f})"


def condition(row: Mapping[str, Any]) -> str:
    """What the row was measured on."""
    words = {name: form.format(row[name]) for name, form in CONDITIONS.items() if row.get(name)}
    words |= {"grid": words["grid"].replace("x", "×")} if "grid" in words else {}
    return ", ".join(words.values()).replace("%", " %")


def markdown(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table."""
    rows = [headings, ["---"] * len(headings), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def entry_section(name: str, result: Mapping[str, Any], stale: bool) -> str:
    """Heading, table, command and origin of one entry."""
    entry, columns = result["entry"], KINDS[result["entry"]["kind"]].columns
    first: dict[str, float] = {}
    lines = []
    for row in result["rows"]:
        on = condition(row)
        reference = first.setdefault(on, row["seconds_per_puzzle"])
        times = f"{row['seconds_per_puzzle']:.2g} s (×{row['seconds_per_puzzle'] / max(reference, 1e-9):.2g})"
        figures = [figure(row, column) for column in columns.values()]
        lines.append([row["solver"], on, str(row["puzzles"]), *figures, *confirmed(row), times])
    headings = ["solver", "puzzles", "count", *columns, *CONFIRMED, "time a puzzle (× the first solver)"]
    machine = result["machine"]
    origin = f"Seed {entry['seed']}; {entry['data']}; measured on {machine['processor']} ({machine['cores']} cores)"
    origin += f" at commit {result['commit'][:9]} in {result['seconds']:.0f} s."
    mark = f" — {STALE}: weights or code changed since" if stale else ""
    command = shlex.join(words_of(entry)).replace("'", "")
    return f"### {name}{mark}\n\n{entry['shows']}.\n\n{markdown(headings, lines)}\n\n{origin}\n\n    {command}\n"


def confidence_section(found: Mapping[str, Mapping[str, Any]], stale: Mapping[str, bool]) -> str:
    """Per kind and entry: precision at confidence ≥ 0.9 and false confirmed joins, of the default solvers."""
    lines = []
    for kind, shown in KINDS.items():
        total = {"sure": 0, "sure_right": 0, "false_joins": 0, "given": 0}
        for name, result in found.items():
            for row in result["rows"] if result["entry"]["kind"] == kind else ():
                if row["solver"] == shown.default:
                    counts = {**row, "given": round(row["pieces"] * row["puzzles"])}
                    total = {key: total[key] + counts[key] for key in total}
                    place = f"{name}: {condition(row)}" + (f" {STALE}" if stale[name] else "")
                    lines.append([place, str(counts["given"]), *confirmed(row)])
        if total["given"]:
            lines.append([f"**{shown.title}, all**", str(total["given"]), *confirmed(total)])
    headings = ["measured on", "pieces", *CONFIRMED]
    return (
        "## Confidence\n\nPieces that the default solvers place with a confidence of 0.9 or more, and how many of them "
        "are right. A false confirmed join is a pair of such pieces in one object whose relative pose is wrong; one "
        f"wrong piece makes one with every other.\n\n{markdown(headings, lines)}\n"
    )


def quoted_section() -> str:
    """Figures of the paper and of later work, in tables of their own."""
    parts = [
        "## Figures of others\n\nQuoted from Scarpellini et al., DiffAssemble (CVPR 2024), and later work, measured by "
        "their authors on other pictures, objects and machines; `diffassemble evaluate --table NAME` prints ours "
        "beside them.\n"
    ]
    for table in tomllib.loads(QUOTED.read_text()).values():
        headings = ["method", *(NAMES.get(column, column.replace("x", "×")) for column in table["columns"])]
        for group, methods in table["quoted"].items():
            on = {"0.0": ""}.get(group, f", {group}" if not group[0].isdigit() else f", {float(group):.0%} missing")
            lines = [[method, *(f"{value:g}" for value in values)] for method, values in methods.items()]
            parts.append(f"### {table['title']}{on.replace('%', ' %')}\n\n{markdown(headings, lines)}\n")
    return "\n".join(parts)


def render_page() -> str:
    """docs/RESULTS.md."""
    found, listed = results(), entries()
    stale = {name: is_stale(result, listed.get(name)) for name, result in found.items()}
    parts = [
        "# Results\n\nGenerated by `make results` from docs/results/*.json; what to measure is listed in "
        "docs/results.toml. Figures are means with their 95 % intervals (bootstrap over puzzles; Wilson for shares). "
        f"Rows marked {STALE} were measured with other weights or other code than the present ones. Sure are pieces at "
        "confidence 0.9 or more.\n",
    ]
    for kind, shown in KINDS.items():
        own = [entry_section(name, one, stale[name]) for name, one in found.items() if one["entry"]["kind"] == kind]
        parts += [f"## {shown.title}\n", *own] if own else []
    parts += [confidence_section(found, stale)] if found else []
    return "\n".join([*parts, quoted_section()])


def render_readme(text: str) -> str:
    """README.md with its table replaced: the default solvers on the entries that are marked for it."""
    listed, lines = entries(), []
    for name, result in results().items():
        if not listed.get(name, {}).get("readme"):
            continue
        mark = f" {STALE}" if is_stale(result, listed[name]) else ""
        kind = KINDS[result["entry"]["kind"]]
        for row in result["rows"]:
            if row["solver"] == kind.default:
                place = f"{result['entry']['shows']}: {condition(row)}{mark}"
                lines.append([place, str(row["puzzles"]), figure(row, kind.headline), *confirmed(row)])
    headings = ["puzzles", "count", "pieces right, % (95 %)", *CONFIRMED]
    before, _, rest = text.partition(MARKERS[0])
    _, _, after = rest.partition(MARKERS[1])
    table = markdown(headings, lines) if lines else "Nothing is measured yet; `make results` measures."
    return f"{before}{MARKERS[0]}\n\n{table}\n\n{MARKERS[1]}{after}"


def render() -> None:
    """Write both documents."""
    PAGE.write_text(render_page())
    README.write_text(render_readme(README.read_text()))


def main() -> int:
    """Measure what is not fresh, one entry after the other, and render; 1 if an entry failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=("run", "render"))
    parser.add_argument("--class", dest="size", default="minutes", choices=("tiny", "minutes", "hour", "overnight"))
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--force", action="store_true")
    options = parser.parse_args()
    failed = []
    if options.work == "run":
        subprocess.run([sys.executable, "-m", "diffassemble", "models", "--prepare"], check=True, env=environment())
    for name, entry in entries().items() if options.work == "run" else ():
        if (name not in options.only) if options.only else entry["class"] != options.size:
            continue
        known = results().get(name)
        if known is not None and not is_stale(known, entry) and not options.force:
            print(f"{name}: fresh", flush=True)
            continue
        print(f"{name}: measuring", flush=True)
        try:
            measure(name, entry, options.data.resolve())
        except subprocess.CalledProcessError as error:
            print(f"{name}: failed with exit code {error.returncode}", flush=True)
            failed.append(name)
        render()
    render()
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
