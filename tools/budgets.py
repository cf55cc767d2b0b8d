"""Line, file and constant budgets of the source tree; `make lint` fails where one is exceeded.

    python tools/budgets.py            # prints the table, exits with 1 beyond a budget

Budgets are those of docs/decisions/001-budgets.md: raising one takes a decision record.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "diffassemble"
LINES = {
    **{"core": 1200, "assembly": 1800, "io": 2600, "diffusion": 500, "network": 3200, "squares": 3000},
    **{"outlines": 3800, "fragments": 4800, "training": 2400, "evaluation": 1700, "rendering": 1800},
    **{"web": 2200, "cli": 1000, "kinds": 500},
}
WHOLE, FILES, RESEARCH, TESTS, CONSTANTS = 30_000, 175, 2500, 18_000, 150


def python_files(folder: Path) -> list[Path]:
    """Tracked and new Python files below a folder."""
    listed = ["git", "ls-files", "-co", "--exclude-standard", "--", f"{folder}/*.py", f"{folder}/**/*.py"]
    found = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return sorted({ROOT / name for name in found if name and (ROOT / name).exists()})


def count_lines(files: list[Path]) -> int:
    """Lines of all files together."""
    return sum(len(file.read_text().splitlines()) for file in files)


def numeric_constants(file: Path) -> Iterator[str]:
    """Module constants whose value is a number or a tuple of numbers."""
    for node in ast.parse(file.read_text()).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if targets and node.value is not None and _is_numeric(node.value):
            for target in targets:
                for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if isinstance(name, ast.Name) and name.id.strip("_").isupper():
                        yield name.id


def _is_numeric(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple | ast.List):
        return bool(value.elts) and all(map(_is_numeric, value.elts))
    if isinstance(value, ast.UnaryOp):
        return _is_numeric(value.operand)
    if isinstance(value, ast.BinOp):
        return _is_numeric(value.left) and _is_numeric(value.right)
    return (
        isinstance(value, ast.Constant) and isinstance(value.value, int | float) and not isinstance(value.value, bool)
    )


def main() -> int:
    """Print every budget beside what is used; 1 if any is exceeded."""
    rows = []
    for folder, budget in LINES.items():
        files = python_files(PACKAGE / folder)
        rows.append((folder, count_lines(files), budget, sum(1 for file in files for _ in numeric_constants(file))))
    files = python_files(PACKAGE)
    research = python_files(ROOT / "src" / "diffassemble_research")
    constants = sum(1 for file in files for _ in numeric_constants(file))
    print(f"{'folder':12} {'lines':>7} {'budget':>7} {'constants':>10}")
    for folder, lines, budget, own in rows:
        print(f"{folder:12} {lines:7,} {budget:7,} {own:10}{'  over' if lines > budget else ''}")
    totals = [
        ("source lines", count_lines(files), WHOLE),
        ("source files", len(files), FILES),
        ("research lines", count_lines(research), RESEARCH),
        ("test lines", count_lines(python_files(ROOT / "tests")), TESTS),
        ("numeric constants", constants, CONSTANTS),
    ]
    for name, used, budget in totals:
        print(f"{name:18} {used:7,} of {budget:7,}{'  over' if used > budget else ''}")
    return int(any(row[1] > row[2] for row in rows) or any(used > budget for _, used, budget in totals))


if __name__ == "__main__":
    sys.exit(main())
