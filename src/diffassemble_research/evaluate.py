"""`diffassemble evaluate` with the tables of the paper; everything heavy is imported once the arguments are parsed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import Gt, Interval, Le
from tyro.conf import arg

from diffassemble.cli.arguments import option, understand
from diffassemble.cli.evaluate import EvaluateOptions


@dataclass(frozen=True)
class PaperOptions(EvaluateOptions):
    """Give every solver the same puzzles, and print how many pieces came out right."""

    table: Annotated[str | None, option("1|2|3|4|missing-3d|pairs|time|memory|pruning")] = None
    """A table of the paper, ours beside the quoted figures. Of broken objects: 1 (methods), 2 (ablations), missing-3d
    (0 to 30 % of the pieces missing), or, of our own, pairs (which fragments that touch are matched). Of pictures: 3
    (whole puzzles), 4 (30 % of the pieces missing), time (seconds by pieces), memory (memory and time by pieces,
    learning and solving, each in a process of its own; both on sample pictures if there is no --data) or pruning
    (networks trained on sparser and sparser graphs; --data LEARN TEST). For tables 3 and 4 name what pictures show:
    --data faces=DIR paintings=DIR, and for grids of 8x8 and more faces:8=DIR if need be. Without --solver all solvers
    of the table are compared."""
    figure: Annotated[Path | None, option("FILE")] = None
    """Where to draw a table, as PNG. Default: table-NAME.png."""
    training_steps: Annotated[int, arg(metavar="N"), Interval(ge=1, le=1_000_000_000)] = 2000
    """Table pruning: steps that each network learns."""
    training_from: Annotated[str, option("NAME|DIR")] = ""
    """Table pruning: weights that each network starts from, such as jigsaw-paper-form. Default: none."""
    degree: Annotated[tuple[float, ...], option("SHARE …"), Gt(0), Le(1_000_000)] = ()
    """Table pruning: neighbours of a piece, as shares of all others up to 1 or as numbers. Default: 0.2 0.6 0.8 1."""


OPTIONS = PaperOptions


def evaluate(options: PaperOptions) -> None:
    """Measure a table, or what the folders hold."""
    from diffassemble.cli.sweep import evaluate_solvers
    from diffassemble.evaluation.sweep import refuse

    table, figure = options.table, options.figure
    refuse("--figure draws a table of the paper; pass --table too", figure is not None and table is None)
    named = figure is None or figure.suffix.lower() == ".png"
    refuse(f"{figure}: figures are PNG pictures; give it a name that ends in .png", not named)
    refuse("--degree is for --table pruning; leave it out", options.degree and table != "pruning")
    if table is None:
        evaluate_solvers(options)
        return
    from diffassemble_research.tables import TABLES, evaluate_table

    refuse(f"no table '{table}'; use one of: {', '.join(TABLES)}", table not in TABLES)
    evaluate_table(options)


def run(argv: list[str]) -> None:
    """Parse the arguments and measure."""
    evaluate(understand(PaperOptions, argv, "diffassemble evaluate"))
