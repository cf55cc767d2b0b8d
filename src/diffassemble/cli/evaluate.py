"""`diffassemble evaluate`: its options; all that is heavy is imported after parsing, so that help comes at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from diffassemble.cli.arguments import Budget, Model, Overwrite, Samples, Seed, Steps, option, understand


@dataclass(frozen=True)
class EvaluateOptions:
    """Give every solver the same puzzles, and print how many pieces came out right."""

    data: Annotated[tuple[str, ...], option("DIR …")] = ()
    """Folders of pictures, of puzzles of flat pieces (puzzle folders, or pictures of pieces with a truth.csv; or
    folders of these), or of broken objects (Breaking Bad, as published or packed). celeba-hq=DIR and wikiart=DIR name
    the test pictures of the paper; solids=N makes and breaks N solids, none of them in the training data."""
    solver: Annotated[tuple[str, ...], option("NAME …")] = ()
    """Solvers to compare. Default: diffusion, for flat pieces their usual solver, or all that a table has."""
    model: Model = None
    rows: Annotated[tuple[str, ...], option("NAME=FOLDER …")] = ()
    """Rows with models of their own, such as dgl=FOLDER; what is no solver's name is solved by diffusion."""
    missing: Annotated[tuple[float, ...], option("SHARE …")] = ()
    """Shares of the pieces to take away, such as 0 0.3. Default: 0, or that of the table."""
    limit: Annotated[int | None, option("N")] = None
    """Pictures per folder or fractures, evenly spread over it. Default: all, or 3 for the table of times."""
    puzzles: Annotated[int | None, option("N")] = None
    """At least so many puzzles a row: fewer pictures are cut, fewer objects scattered again with the next seeds."""
    seed: Seed = 0
    samples: Samples = 8
    steps: Steps = 20
    budget: Budget = math.inf
    json: Annotated[Path | None, option("FILE")] = None
    """Also write the rows to this file. Default for a table: table-NAME.json."""
    report: Annotated[Path | None, option("FILE")] = None
    """Also write a page with the table, a plot, and the best and worst answers to this .html file."""
    scores: Annotated[Path | None, option("FILE")] = None
    """Note the score of every puzzle here, a line of JSON each; after an interruption the same command continues."""
    overwrite: Overwrite = False
    ray: Annotated[str | None, option("HOST:PORT|auto|local")] = None
    """Let the machines of a Ray cluster solve the puzzles (auto: the cluster that this machine belongs to), or (local)
    one process for each core of this machine. Needs Ray: pip install "diffassemble[cluster]"."""

    grid: Annotated[tuple[str, ...], option("N|RxC …")] = ()
    """Pictures: grids, such as 6 for 6x6, or 4x7. Default: 6, or those of the table."""
    erode: Annotated[tuple[int, ...], option("PX …")] = ()
    """Pictures: pixels lost at every side of a piece, such as 0 2. Default: 0."""
    size: Annotated[int | None, option("PX")] = None
    """Pictures: pixels of a piece's side, before erosion. Default: 32 for squares, else as `cut` has it."""
    shape: Literal["squares", "tabs", "torn", "shards", "strips"] = "squares"
    """Pictures: what they are cut into: squares, or pieces of any outline, as `cut` makes them."""
    split: Literal["train", "val", "all"] = "val"
    """Broken objects: those to learn from, those held out, or all."""
    subset: Annotated[str, option("NAME")] = "everyday"
    """Broken objects: the part of the collection, such as everyday, artifact or example. Default: everyday."""
    pieces: Annotated[tuple[int, ...], option("N …")] = ()
    """Broken objects: the least and the most pieces. Default: 2 20, or those of the table. With --shape: how many
    pieces pictures are cut into, such as 100 500. Default: 100."""
    anchor: Annotated[tuple[Literal["none", "largest"], ...], option("none|largest …")] = ()
    """Broken objects: score poses as answered (none), or after a motion of the whole such that the largest piece stands
    at its true pose (largest), or both. Default: none."""
    noise: Annotated[tuple[float, ...], option("SHARE …")] = ()
    """Broken objects: deviation added to vertices, of the object's size, such as 0 0.001. Default: 0."""
    points: Annotated[tuple[int, ...], option("N …")] = ()
    """Broken objects: give pieces as clouds, so many points a whole object, such as 5000 1000; 0 is whole meshes.
    Default: 0."""
    points_each: Annotated[tuple[int, ...], option("N …")] = ()
    """Broken objects: give pieces as clouds, so many points a piece, such as 30000 5000. Default: 0."""
    wear: Annotated[tuple[float, ...], option("SHARE …")] = ()
    """Broken objects: radius with which breaks are rounded, of the object's size, such as 0 0.005. Default: 0."""
    seeds: Annotated[int | None, option("N")] = None
    """Broken objects: how often each is drawn, with seed, seed + 1, … Default: 5 with missing pieces, else 1."""


OPTIONS = EvaluateOptions


def run(argv: list[str]) -> None:
    """Parse the arguments and measure."""
    options = understand(EvaluateOptions, argv, "diffassemble evaluate")
    from diffassemble.cli.sweep import evaluate_solvers

    evaluate_solvers(options)
