"""What others report, copied from them: never measured here, and shown only in columns of its own, beside ours.

Source: G. Scarpellini, S. Fiorini, F. Giuliari, P. Morerio, A. Del Bue, "DiffAssemble: A Unified Graph-Diffusion Model
for 2D and 3D Reassembly", CVPR 2024: Tables 1 to 4, the figure "Time requirement to solve one puzzle", and the
supplementary's table of missing pieces. For later work PuzzleFusion++ (2025) and GARF (2025; volume-constrained
fractures, the largest piece's pose given). All figures are the authors', on their machines, pictures and objects
(Breaking Bad's everyday objects); "diffusion" is their DiffAssemble.

Pictures: "no diff." and "no equiv." are DiffAssemble without diffusion and without the equivariant encoder. The paper
compares directly, place and turn. It does not say how it scored methods that can't know which way is up. Where it
contradicts itself, the tables are followed: DiffAssemble on 8x8 faces is 87.66 there and 84.94 in the supplementary;
the citations of Yu and Huroyan are exchanged in Table 4, their names are taken as they stand.

Objects: "plain" and "invariant" have such an encoder, "gcn" such layers, "six-d" rotations as six numbers,
"no-chamfer" no Chamfer loss, "no-diffusion" a single step. For missing pieces the caption has 8 to 20 pieces, the
text 10 to 20.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Literal

from diffassemble.evaluation.fragments import ERROR_LABELS
from diffassemble.evaluation.rows import Interval, Row

FACES, PAINTINGS = "faces", "paintings"
# What the paper calls the pictures.
PAPER_NAMES = {FACES: "PuzzleCelebA", PAINTINGS: "PuzzleWikiArts"}
CHANCE = ("identity", "random")
# The fields of rows that tables about objects show, and their headings.
ERRORS = {"rmse_r": "R", "rmse_t": "T", "part_accuracy": "PA"}
Values = tuple[float | None, ...]


@dataclass(frozen=True)
class PaperTable:
    """A table or figure of the paper.

    `quoted` holds a method's figures, one for each of the `columns`, by what they were measured on: a kind of
    pictures, or a share of missing pieces. Columns are grids, or errors. `methods` are the rows that we measure, if not
    all solvers of the kind.
    """

    kind: Literal["squares", "fragments"]
    title: str
    columns: tuple[str, ...]
    quoted: Mapping[str | float, Mapping[str, tuple[float, ...]]]
    figures: Literal["accuracy", "seconds", "errors"] = "accuracy"
    missing: tuple[float, ...] = (0.0,)
    methods: tuple[str, ...] = ()
    pieces: tuple[int, int] = (2, 20)
    digits: int = 2

    def figures_of(self, method: str, group: str | float, columns: Sequence[str]) -> Values:
        """What is said of a method, column by column; none where nothing is said."""
        known = dict(zip(self.columns, self.quoted.get(group, {}).get(method, ()), strict=False))
        return tuple(known.get(column) for column in columns)


def _read_tables() -> dict[str, PaperTable]:
    """The tables by name, from the file beside this one; objects are grouped by the share of missing pieces."""
    tables = {}
    for name, fields in tomllib.loads((files(__package__) / "quoted.toml").read_text()).items():
        group = float if fields["kind"] == "fragments" else str
        quoted = {
            group(key): {one: tuple(figures[one]) for one in figures} for key, figures in fields.pop("quoted").items()
        }
        given: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in fields.items()}
        tables[name] = PaperTable(**given, quoted=quoted)
    return tables


TABLES = _read_tables()
ABSOLUTE, FREE, NOT_OURS = "absolute", "orient. free", "not measured"


@dataclass(frozen=True)
class Line:
    """A method under one score, column by column: ours, how far below and above they may be, and the quoted figures."""

    method: str
    score: str
    ours: Values
    quoted: Values = ()
    reach: tuple[Interval, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """All methods on the same cases: pictures of a kind, or objects with a share of their pieces missing, the `group`.

    `view` is what ours were measured on, `labels` the units of all columns that are drawn; the `unquoted` last
    columns are ours alone. `formats` are those of our figures and of the quoted ones, which keep the digits that they
    have there. The `best` of a column is marked, if figures can be compared; if not, our deviation is shown.
    """

    title: str
    view: str
    group: str | float
    columns: tuple[str, ...]
    labels: tuple[str, ...]
    lines: tuple[Line, ...]
    formats: tuple[str, str] = (".1f", ".2f")
    source: str = "paper"
    best: Callable[[Any], float] | None = max
    unquoted: int = 0
    note: str = ""


def _beside(table: PaperTable, group: str | float, columns: Sequence[str], ours: Sequence[Line]) -> tuple[Line, ...]:
    """Our lines, the first of each method with what is quoted of it, then methods that are only quoted."""
    nothing, seen, lines = (None,) * len(columns), set[str](), list[Line]()
    for line in ours:
        known = nothing if line.method in seen else table.figures_of(line.method, group, columns)
        seen.add(line.method)
        lines.append(replace(line, quoted=known))
    for method in table.quoted.get(group, {}):
        if method not in seen:
            lines.append(Line(method, NOT_OURS, nothing, table.figures_of(method, group, columns)))
    return tuple(lines)


_BESIDE = (
    "Ours: measured here, all solvers on the same puzzles. Paper: quoted, from other pictures, puzzles and machines. "
)
_SCORES = (
    "Percent of pieces at the right place and turn: absolute as they stand, orient. free at the best turn of the whole "
    "picture. Solvers that only compare borders can't know which way is up: they have orient. free alone."
)
_ERRORS = (
    "R in degrees, T × 100, PA in percent; means over classes, ± deviation over seeds. Ours: measured here, all rows "
    "on the same objects. Quoted: from other objects and machines. garf (anchor): the largest piece's pose is given."
)


def compare_grids(
    table: PaperTable, group: str, solvers: Sequence[Sequence[Row]], borders_only: Collection[str] = ()
) -> Comparison:
    """Accuracies or seconds on one kind of pictures, from the results of each solver, grid by grid.

    Percent right as it stands and at the best turn of the whole; of solvers in `borders_only` the latter alone.
    """
    grids = tuple(str(row.setting["grid"]) for row in solvers[0])
    if table.figures == "seconds":
        seconds = [Line(one[0].solver, "", tuple(row.seconds_per_puzzle for row in one)) for one in solvers]
        lines = _beside(table, group, grids, seconds)
        sizes, note = tuple(f"{row.pieces:g}" for row in solvers[0]), _BESIDE + "Seconds a puzzle."
        return Comparison(
            table.title, "", group, sizes, ("seconds a puzzle",), lines, (".2f", "g"), best=min, note=note
        )
    ours = []
    for results in solvers:
        for name, score in (("accuracy", ABSOLUTE), ("accuracy_free", FREE)):
            if score == FREE or results[0].solver not in borders_only:
                values = tuple(row[name] for row in results)
                reach = tuple(row.reach(name) for row in results)
                ours.append(Line(results[0].solver, score, values, reach=reach))
    title, labels = f"{group} ({PAPER_NAMES[group]} in the paper)", tuple(f"{grid}, % right" for grid in grids)
    lines = _beside(table, group, grids, ours)
    return Comparison(title, title, group, grids, labels, lines, note=_BESIDE + _SCORES)


def compare_errors(table: PaperTable, results: Sequence[Row]) -> list[Comparison]:
    """Errors on broken objects: one comparison for each collection, anchor and share of missing pieces."""
    names = (*ERRORS, "geodesic")
    found = []
    groups: dict[tuple[str, str, float], list[Row]] = {}
    for row in results:
        key = row.data, str(row.setting["anchor"]), float(row.setting["missing"])
        groups.setdefault(key, []).append(row)
    for (data, anchor, missing), own in groups.items():
        ours = [Line(row.solver, "", tuple(row[name] for name in names), reach=spread(row, names)) for row in own]
        share = f", {missing:.0%} missing" if missing else ""
        found.append(
            Comparison(
                f"{table.title}{share}; ours: {own[0].items} fractures of {data}, anchor {anchor}",
                *(f"{data}, anchor {anchor}", missing, (*ERRORS.values(), "geodesic"), tuple(ERROR_LABELS.values())),
                _beside(table, missing, names, ours),
                formats=(".1f", f".{table.digits}f"),
                source="quoted",
                best=None,
                unquoted=1,
                note=_ERRORS,
            )
        )
    return found


def spread(row: Row, names: Sequence[str]) -> tuple[Interval, ...]:
    """How far figures may be off: by their deviation over seeds, 0 without several."""
    own = row.deviation or {}
    return tuple((own.get(name, 0.0), own.get(name, 0.0)) for name in names)
