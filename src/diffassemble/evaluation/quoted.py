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
"no-chamfer" no Chamfer loss, "no-diffusion" a single step. For missing pieces the caption says 8 to 20 pieces, the
text 10 to 20.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from diffassemble.evaluation.sweep import Interval, Measured

FACES, PAINTINGS = "faces", "paintings"
# What the paper calls the pictures.
PAPER_NAMES = {FACES: "PuzzleCelebA", PAINTINGS: "PuzzleWikiArts"}
CHANCE = ("identity", "random")
# The fields of rows that tables about objects show; their headings and labels.
ERRORS = {"rmse_r": "R", "rmse_t": "T", "part_accuracy": "PA"}
ERROR_LABELS = {"rmse_r": "RMSE(R), degrees", "rmse_t": "RMSE(T) × 100", "part_accuracy": "part accuracy, %"}
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


def _parsed(*lines: str) -> dict[str, tuple[float, ...]]:
    """Figures by method, from lines such as `yu 94.6 92.9 | no diff. 73.1 54.7`."""
    found = {}
    for words in (part.split() for line in lines for part in line.split("|")):
        numbers = [word for word in words if word[0].isdecimal()]
        found[" ".join(words[: -len(numbers)])] = tuple(map(float, numbers))
    return found


TABLES = {
    "1": PaperTable(
        kind="fragments",
        title="Table 1, everyday objects",
        columns=tuple(ERRORS),
        figures="errors",
        methods=(*CHANCE, "global", "lstm", "dgl", "nsm", "se3-equiv", "diffusion"),
        digits=1,
        quoted={
            0.0: _parsed(
                "global 81.6 15.2 17.5 | lstm 87.4 15.8 11.3 | dgl 81.4 14.9 25.4 | nsm 83.3 15.3 10.6",
                "se3-equiv 77.9 16.7 8.1 | no-diffusion 83.6 17.1 3.1 | plain 81.7 17.0 18.3",
                "diffusion 73.3 14.8 27.5 | puzzlefusion++ 38.5 8.0 70.2 | garf (anchor) 5.3 1.1 95.7",
            )
        },
    ),
    "2": PaperTable(
        kind="fragments",
        title="Table 2, ablations on everyday objects",
        columns=tuple(ERRORS),
        figures="errors",
        methods=(*CHANCE, "plain", "invariant", "six-d", "no-chamfer", "diffusion", "no-diffusion", "gcn"),
        quoted={
            0.0: _parsed(
                "plain 81.68 17.04 18.32 | invariant 77.06 18.09 14.27 | six-d 75.60 18.80 18.50",
                "no-chamfer 72.75 14.78 24.10 | diffusion 73.34 14.82 27.48 | no-diffusion 83.60 17.12 3.10",
                "gcn 74.56 15.79 21.33",
            )
        },
    ),
    "3": PaperTable(
        kind="squares",
        title="Table 3, whole puzzles",
        columns=("6x6", "8x8", "10x10", "12x12"),
        quoted={
            FACES: _parsed(
                "gallagher 80.21 55.18 71.19 69.81 | yu 98.63 94.65 98.33 93.33 | huroyan 98.47 97.45 98.65 97.08",
                "no diff. 99.43 79.84 99.05 91.28 | no equiv. 96.12 71.62 91.98 64.15",
                "diffusion 99.51 87.66 99.30 97.76",
            ),
            PAINTINGS: _parsed(
                "gallagher 71.88 61.63 54.15 44.68 | yu 94.62 92.95 90.99 89.88 | huroyan 92.69 91.37 89.74 88.28",
                "no diff. 73.07 54.70 22.68 18.27 | no equiv. 25.31 14.63 8.19 4.96",
                "diffusion 90.65 72.79 63.33 53.08",
            ),
        },
    ),
    "4": PaperTable(
        kind="squares",
        title="Table 4, 30 % of the pieces missing",
        columns=("6x6", "12x12"),
        missing=(0.3,),
        quoted={
            FACES: _parsed("gallagher 33.28 19.18 | yu 33.45 21.78 | huroyan 18.18 0.09 | diffusion 96.92 76.49"),
            PAINTINGS: _parsed("gallagher 32.19 24.12 | yu 32.53 24.65 | huroyan 17.14 0.08 | diffusion 51.21 27.09"),
        },
    ),
    "missing-3d": PaperTable(
        kind="fragments",
        title="Missing pieces, everyday objects of 8 to 20 pieces",
        columns=tuple(ERRORS),
        figures="errors",
        missing=(0.0, 0.1, 0.2, 0.3),
        methods=(*CHANCE, "global", "dgl", "lstm", "se3-equiv", "diffusion"),
        pieces=(8, 20),
        quoted={
            0.0: _parsed(
                "global 83.00 18.74 7.02 | dgl 84.56 18.26 9.72 | lstm 88.26 19.64 4.78",
                "se3-equiv 81.82 18.50 6.74 | diffusion 80.13 19.02 11.61",
            ),
            0.1: _parsed(
                "global 83.86 18.76 6.78 | dgl 84.74 18.98 8.42 | lstm 88.40 19.74 4.96",
                "se3-equiv 82.96 18.54 6.58 | diffusion 80.32 19.32 11.20",
            ),
            0.2: _parsed(
                "global 84.20 18.86 6.66 | dgl 85.01 19.80 7.34 | lstm 88.72 19.90 4.88",
                "se3-equiv 82.52 18.72 6.54 | diffusion 80.37 19.52 10.67",
            ),
            0.3: _parsed(
                "global 84.76 18.96 6.62 | dgl 85.64 20.68 6.56 | lstm 88.96 20.01 4.36",
                "se3-equiv 82.88 19.48 6.51 | diffusion 80.46 19.84 10.43",
            ),
        },
    ),
    # 36, 144, 400, 625 and 900 pieces.
    "time": PaperTable(
        kind="squares",
        title="Seconds to solve one puzzle (quoted: diffusion on an RTX 4090)",
        columns=("6x6", "12x12", "20x20", "25x25", "30x30"),
        figures="seconds",
        quoted={
            FACES: _parsed(
                "gallagher 0.3 4.4 23.35 34.11 55.10 | yu 0.3 3.0 14.0 42.0 92.0",
                "huroyan 1.0 8.0 35.0 72.0 152.0 | diffusion 1.0 1.0 2.0 3.0 5.0",
            )
        },
    ),
}

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

    `view` tells what ours were measured on, `labels` the units of all columns that are drawn; the `unquoted` last
    columns are ours alone. `formats` are those of our figures and of the quoted ones, which keep the digits that they
    have there. The `best` of a column is told from the others, if they can be compared; if not, our deviation is told.
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
        told = nothing if line.method in seen else table.figures_of(line.method, group, columns)
        seen.add(line.method)
        lines.append(replace(line, quoted=told))
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
    table: PaperTable, group: str, solvers: Sequence[Sequence[Measured]], borders_only: Collection[str] = ()
) -> Comparison:
    """Accuracies or seconds on one kind of pictures, from the results of each solver, grid by grid.

    Percent right as it stands and at the best turn of the whole; of solvers in `borders_only` the latter alone.
    """
    grids = tuple(result.row.grid for result in solvers[0])
    if table.figures == "seconds":
        seconds = [Line(one[0].row.solver, "", tuple(r.row.seconds_per_puzzle for r in one)) for one in solvers]
        lines = _beside(table, group, grids, seconds)
        sizes, note = tuple(str(result.row.pieces) for result in solvers[0]), _BESIDE + "Seconds a puzzle."
        return Comparison(
            table.title, "", group, sizes, ("seconds a puzzle",), lines, (".2f", "g"), best=min, note=note
        )
    ours = []
    for results in solvers:
        for name, score in (("accuracy", ABSOLUTE), ("accuracy_free", FREE)):
            if score == FREE or results[0].row.solver not in borders_only:
                values = tuple(getattr(result.row, name) for result in results)
                reach = tuple(result.reach(name) for result in results)
                ours.append(Line(results[0].row.solver, score, values, reach=reach))
    title, labels = f"{group} ({PAPER_NAMES[group]} in the paper)", tuple(f"{grid}, % right" for grid in grids)
    lines = _beside(table, group, grids, ours)
    return Comparison(title, title, group, grids, labels, lines, note=_BESIDE + _SCORES)


def compare_errors(table: PaperTable, results: Sequence[Measured]) -> list[Comparison]:
    """Errors on broken objects: one comparison for each collection, anchor and share of missing pieces."""
    found, names = [], (*ERRORS, "geodesic")
    kinds = [(result.row.data, result.row.anchor, result.row.missing) for result in results]
    for data, anchor, missing in dict.fromkeys(kinds):
        own = [result for result, kind in zip(results, kinds, strict=True) if kind == (data, anchor, missing)]
        ours = []
        for result in own:
            values, reach = tuple(getattr(result.row, name) for name in names), tuple(map(result.reach, names))
            ours.append(Line(result.row.solver, "", values, reach=reach))
        share = f", {missing:.0%} missing" if missing else ""
        found.append(
            Comparison(
                title=f"{table.title}{share}; ours: {own[0].row.objects} fractures of {data}, anchor {anchor}",
                view=f"{data}, anchor {anchor}",
                group=missing,
                columns=(*ERRORS.values(), "geodesic"),
                labels=tuple(ERROR_LABELS.values()),
                lines=_beside(table, missing, names, ours),
                formats=(".1f", f".{table.digits}f"),
                source="quoted",
                best=None,
                unquoted=1,
                note=_ERRORS,
            )
        )
    return found
