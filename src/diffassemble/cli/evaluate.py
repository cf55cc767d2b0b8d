"""`diffassemble evaluate`: tables of results.

Everything heavy is imported once the arguments are understood, so that help comes at once.
"""

from __future__ import annotations

import tyro

from diffassemble.cli.evaluate_options import EvaluateOptions


def evaluate(options: EvaluateOptions) -> None:
    """Measure on what the folders hold, or the table is about: broken objects or pictures."""
    from diffassemble.cli.evaluate_fragments import about_fragments, evaluate_fragments
    from diffassemble.cli.evaluate_pictures import evaluate_pictures
    from diffassemble.cli.memory_table import evaluate_memory
    from diffassemble.cli.pruning_table import evaluate_pruning

    figure = options.figure
    _refuse("--figure draws a table of the paper; pass --table too", figure is not None and options.table is None)
    _refuse(
        f"{figure}: figures are PNG pictures; give it a name that ends in .png",
        figure is not None and figure.suffix.lower() != ".png",
    )
    _refuse("--degree is for --table pruning; leave it out", options.degree and options.table != "pruning")
    _refuse(
        f"--report shows answers of solvers, of which table {options.table} has none; leave it out",
        options.report is not None and options.table in ("memory", "pruning"),
    )
    if about_fragments(options.table, options.data):
        _refuse(
            "--grid, --erode, --puzzles, --scores and --ray are for pictures; leave them out here",
            *(options.grid, options.erode, options.puzzles is not None),
            *(options.scores is not None, options.ray is not None),
        )
        evaluate_fragments(options)
    else:
        _refuse(
            "--rows, --pieces, --anchor, --noise, --points and --seeds are for broken objects, but there are none here",
            *(options.rows, options.pieces, options.anchor, options.noise, options.points, options.seeds is not None),
        )
        ways = {"memory": evaluate_memory, "pruning": evaluate_pruning}
        ways.get(options.table or "", evaluate_pictures)(options)


def _refuse(message: str, *wishes: object) -> None:
    """Tell a wish that can't be granted, if there is one."""
    from diffassemble.core import InputError

    if any(wishes):
        raise InputError(message)


def run(argv: list[str]) -> None:
    """Parse the arguments and measure."""
    evaluate(tyro.cli(EvaluateOptions, args=argv, prog="diffassemble evaluate"))
