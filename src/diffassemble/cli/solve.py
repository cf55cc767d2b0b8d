"""`diffassemble solve`: pieces in, assembly out."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from diffassemble.cli.arguments import (
    Budget,
    Colours,
    Flag,
    Grid,
    Model,
    Overwrite,
    Samples,
    Seed,
    Sheet,
    Steps,
    option,
)

if TYPE_CHECKING:
    from diffassemble.assembly.answer import Answer


def solve(
    pieces: Annotated[Positional[tuple[Path, ...]], arg(metavar="DIR|ZIP|PHOTO...")],
    out: Annotated[Path | None, option("DIR|-")] = None,
    grid: Grid = None,
    solver: str | None = None,
    model: Model = None,
    samples: Samples = 8,
    steps: Steps = 20,
    budget: Budget = math.inf,
    seed: Seed = 0,
    lock: Annotated[Path | None, arg(metavar="FILE")] = None,
    extra: Flag = False,
    objects: Literal["1", "auto"] = "1",
    kind: Literal["squares", "outlines", "fragments"] | None = None,
    colours: Colours = None,
    sheet: Sheet = "auto",
    turn: Literal[0, 90, 180, 270] = 0,
    next: Flag = False,
    json: Flag = False,
    pictures: bool = True,
    palette: Flag = False,
    overwrite: Overwrite = False,
) -> None:
    """Put the pieces of a picture or the fragments of an object together.

    Writes assembly.json, which is there as soon as the answer is found; for fragments also assembled.glb, posed copies
    and matrices.txt; then assembled.png, steps.gif and report.html.

    Args:
        pieces: A puzzle folder; photos of pieces that lie apart, of any outline; a folder or zip file of photos, of
            cut-outs with alpha, of pictures with masks, of pictures of equal size, or of meshes; or, with --grid, one
            picture that is a shuffled grid.
        out: The folder to write. Default: the name of the input with "-solved" behind it. "-" writes no folder, but
            assembly.json to the standard output.
        solver: The solver. Default: hybrid for pieces on a grid, grow for pieces of any outline, mend for fragments.
        lock: An earlier assembly.json; pieces that have "locked": true there stay where they are.
        extra: Pieces that do not belong to this picture are allowed: they are left out and named. Needs --grid.
        objects: With "auto" the fragments may be of several objects, or flat pieces of several puzzles in one box: they
            are separated, and each whole is assembled. Solvers mend and grow only.
        kind: What the pieces are, if the input does not show it: equal squares of a picture, flat pieces of any
            outline, or fragments of an object.
        turn: Degrees by which the assembled whole is turned clockwise, if it is the wrong way up; flat pieces only.
        next: Also print the ten most certain joins that are still to make, for people who lay real pieces; joins of
            pieces that --lock holds are made already.
        json: Report progress to other programs: a line of JSON for every step on the standard output.
        pictures: Draw assembled.png, steps.gif and report.html, once the answer is written.
        palette: Show and write each fragment in a colour of its own instead of the colours of its scan.
    """
    from diffassemble.assembly.kind import SolverOptions
    from diffassemble.cli.progress import Output, show_found
    from diffassemble.core import InputError
    from diffassemble.core.seeds import check_seed
    from diffassemble.io.assemblies import check_assembly_folder, read_locks
    from diffassemble.io.documents import parse_grid
    from diffassemble.io.puzzles import open_input
    from diffassemble.kinds import kind_of, make_solver
    from diffassemble.squares.placement import set_aside

    # 1. Check the options, and read the pieces.
    check_seed(seed)
    if not pieces:
        raise InputError("no pieces given; pass a folder, a zip file or photos")
    source = pieces[0].resolve()
    beside = source.parent / f"{source.stem if source.is_file() else source.name}-solved"
    folder = None if out == Path("-") else out or beside
    output = Output(json, document=folder is None)
    if folder is not None:
        check_assembly_folder(folder, overwrite)
    options = SolverOptions(model or "", samples, steps, budget, several=objects == "auto")
    make = cache(partial(make_solver, name=solver, options=options))
    given: dict[str, Any] = {"extra": extra, "make": make, "kind": kind, "more": pieces[1:], "colours": colours}
    show = partial(show_found, folder, overwrite, output.say)
    given |= {"sheet": sheet, "seed": seed, "say": output.say, "show": show}
    puzzle = open_input(pieces[0], None if grid is None else parse_grid(grid), **given)
    found, called = kind_of(puzzle), puzzle.pieces.called
    if next and found.next_joins is None:
        raise InputError(f"--next is for real pieces that people join; these are {called}")
    if palette and found.in_palette is None:
        raise InputError(f"--palette is for fragments of an object; these are {called}")
    if extra and puzzle.lattice is None:
        raise InputError(f"--extra is for square pieces; these are {called}, which are left out if they fit nowhere")
    if turn:
        puzzle.check_turn(turn)
    # 2. Solve.
    chosen = make(puzzle.kind)
    if lock is not None:
        puzzle = replace(puzzle, locks=read_locks(lock, puzzle))
    kept = set_aside(puzzle) if extra else None
    assembly = output.assembled(puzzle if kept is None else kept.puzzle, chosen, seed)
    assembly = replace(assembly, extra=() if kept is None else kept.extra)
    assembly = assembly.turned(turn) if turn else assembly
    # 3. Write the answer, then its drawings.
    settings = {"model": model or "default", "samples": samples, "steps": steps, "budget (s)": budget, "seed": seed}
    settings = {name: "none" if value == math.inf else value for name, value in settings.items()}
    settings |= {"turned by": f"{turn}°"} if turn else {}
    shown = found.in_palette(assembly) if palette and found.in_palette is not None else assembly
    output.deliver(shown, folder, overwrite, pictures, [(name, str(value)) for name, value in settings.items()])
    for number, join in enumerate(found.next_joins(assembly) if next and found.next_joins is not None else (), 1):
        output.say(f"next join {number}: {join.words}")
        names = [assembly.puzzle.names[join.piece], assembly.puzzle.names[join.neighbour]]
        output.event("next", pieces=names, sure=join.sure)
    _check_joined(assembly)


def _check_joined(assembly: Answer) -> None:
    """Fail if a solver that may leave pieces out joined no two of them; locked pieces were placed by a person."""
    from diffassemble.cli.main import Unsolved
    from diffassemble.rendering.report import plain_reason

    placed = [] if assembly.objects is None else [number for number in assembly.objects.tolist() if number >= 0]
    if assembly.objects is None or assembly.puzzle.locks is not None or len(set(placed)) < len(placed):
        return
    notes = Counter(plain_reason(note) for note in assembly.notes or () if note)
    why = f"; most often: {notes.most_common(1)[0][0]}" if notes else ""
    advice = "are they of one picture or object, and is --kind right?"
    raise Unsolved(f"no two of the {len(assembly.puzzle)} {assembly.puzzle.pieces.called} were joined{why}; {advice}")
