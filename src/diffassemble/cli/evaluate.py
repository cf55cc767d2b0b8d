"""`diffassemble evaluate`: what it can be asked for.

Everything heavy is imported once the arguments are understood, so that help comes at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import arg

from diffassemble.cli.arguments import understand


def optional(metavar: str) -> Any:
    """An option whose default is told in its help."""
    return arg(metavar=metavar, help_behavior_hint="")


@dataclass(frozen=True)
class EvaluateOptions:
    """Give every solver the same puzzles, and print how many pieces came out right."""

    data: Annotated[tuple[str, ...], optional("DIR …")] = ()
    """Folders of pictures, of puzzles of flat pieces (puzzle folders, or pictures of pieces with a truth.csv; or
    folders of these), or of broken objects (Breaking Bad, as published or packed); celeba-hq=DIR and wikiart=DIR
    stand for the test pictures of the paper, solids=N for N solids that are made and broken here, none of them learnt
    from."""
    solver: Annotated[tuple[str, ...], optional("NAME …")] = ()
    """Solvers to compare. Default: diffusion, for flat pieces their usual solver, or all that a table has."""
    model: Annotated[str | None, optional("NAME")] = None
    """The model of learned solvers: a bundled name, a folder or a hub id. Default: jigsaw or fragments."""
    rows: Annotated[tuple[str, ...], optional("NAME=FOLDER …")] = ()
    """Rows with models of their own, such as dgl=FOLDER; what is no solver's name is solved by diffusion."""
    missing: Annotated[tuple[float, ...], optional("SHARE …")] = ()
    """Shares of the pieces to take away, such as 0 0.3. Default: 0, or that of the table."""
    limit: Annotated[int | None, optional("N")] = None
    """Pictures per folder or fractures, evenly spread over it. Default: all, or 3 for the table of times."""
    puzzles: Annotated[int | None, optional("N")] = None
    """At least so many puzzles a row: fewer pictures are cut, fewer objects scattered again with the next seeds."""
    seed: int = 0
    """The same seed gives the same puzzles."""
    samples: int = 8
    """Answers that a diffusion solver draws, to keep the best of them."""
    steps: int = 20
    """Denoising steps of a diffusion solver."""
    budget: Annotated[float, optional("SECONDS")] = math.inf
    """Seconds a puzzle, after which solvers that search give their best answer so far. Default: no limit."""
    json: Annotated[Path | None, optional("FILE")] = None
    """Also write the rows to this file. Default for a table: table-NAME.json."""
    report: Annotated[Path | None, optional("FILE")] = None
    """Also write a page with the table, a plot, and the best and worst answers to this .html file."""
    scores: Annotated[Path | None, optional("FILE")] = None
    """Note the score of every puzzle here, a line of JSON each; broken off and started again, the same command goes on
    where it was."""
    overwrite: bool = False
    """Replace what an earlier run wrote to --json, --figure or --report; what others wrote is never replaced."""
    ray: Annotated[str | None, optional("HOST:PORT|auto|local")] = None
    """Let the machines of a Ray cluster solve the puzzles (auto: the cluster that this machine belongs to), or (local)
    one process for each core of this machine. Needs Ray: pip install "diffassemble[cluster]"."""

    grid: Annotated[tuple[str, ...], optional("N|RxC …")] = ()
    """Pictures: grids, such as 6 for 6x6, or 4x7. Default: 6, or those of the table."""
    erode: Annotated[tuple[int, ...], optional("PX …")] = ()
    """Pictures: pixels lost at every side of a piece, such as 0 2. Default: 0."""
    size: Annotated[int | None, optional("PX")] = None
    """Pictures: pixels of a piece's side, before erosion. Default: 32 for squares."""
    shape: Literal["squares", "tabs", "torn", "shards", "strips"] = "squares"
    """Pictures: what they are cut into: squares, or pieces of any outline, as `cut` makes them. Those are as large as
    `cut` makes them, too, if --size is not told."""
    split: Literal["train", "val", "all"] = "val"
    """Broken objects: those to learn from, those held out, or all."""
    subset: Annotated[str, arg(metavar="NAME")] = "everyday"
    """Broken objects: the part of the collection, such as everyday, artifact or example."""
    pieces: Annotated[tuple[int, ...], optional("N …")] = ()
    """Broken objects: the least and the most pieces. Default: 2 20, or those of the table. With --shape: how many
    pieces pictures are cut into, such as 100 500. Default: 100."""
    anchor: Annotated[tuple[Literal["none", "largest"], ...], optional("none|largest …")] = ()
    """Broken objects: poses as answered (none), or moved as a whole such that the largest piece stands at its true pose
    (largest); both can be told at once. Default: none."""
    noise: Annotated[tuple[float, ...], optional("SHARE …")] = ()
    """Broken objects: deviation added to vertices, of the object's size, such as 0 0.001. Default: 0."""
    points: Annotated[tuple[int, ...], optional("N …")] = ()
    """Broken objects: give pieces as clouds, so many points a whole object, such as 5000 1000; 0 is whole meshes.
    Default: 0."""
    points_each: Annotated[tuple[int, ...], optional("N …")] = ()
    """Broken objects: give pieces as clouds, so many points a piece, such as 30000 5000. Default: 0."""
    wear: Annotated[tuple[float, ...], optional("SHARE …")] = ()
    """Broken objects: radius with which breaks are worn round, of the object's size, such as 0 0.005. Default: 0."""
    seeds: Annotated[int | None, optional("N")] = None
    """Broken objects: how often each is drawn, with seed, seed + 1, … Default: 5 with missing pieces, else 1."""


def run(argv: list[str]) -> None:
    """Parse the arguments and measure."""
    options = understand(EvaluateOptions, argv, "diffassemble evaluate")
    from diffassemble.cli.sweep import evaluate_solvers

    evaluate_solvers(options)
