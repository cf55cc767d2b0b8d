"""`diffassemble solve`: pieces in, assembly out."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

if TYPE_CHECKING:
    from diffassemble.assembly.answer import Answer
    from diffassemble.cli.progress import Output

Flag = tyro.conf.FlagCreatePairsOff


def solve(
    pieces: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="DIR|ZIP|PHOTO...")],
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR|-")] = None,
    grid: Annotated[str | None, tyro.conf.arg(metavar="RxC")] = None,
    solver: str | None = None,
    model: str | None = None,
    samples: int = 8,
    steps: int = 20,
    budget: Annotated[float, tyro.conf.arg(metavar="SECONDS", help_behavior_hint="")] = math.inf,
    seed: int = 0,
    lock: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    extra: Annotated[bool, Flag] = False,
    objects: Literal["1", "auto"] = "1",
    kind: Literal["squares", "outlines", "fragments"] | None = None,
    colours: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    sheet: Annotated[str, tyro.conf.arg(metavar="FORMAT")] = "auto",
    turn: Literal[0, 90, 180, 270] = 0,
    next: Annotated[bool, Flag] = False,
    json: Annotated[bool, Flag] = False,
    pictures: bool = True,
    palette: Annotated[bool, Flag] = False,
    overwrite: bool = False,
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
        grid: Rows and columns, such as 6x6. Puzzle folders know theirs; for other folders it is found out.
        solver: The solver. Default: hybrid for pieces on a grid, grow for pieces of any outline, mend for fragments.
        model: Its weights: a bundled name, a folder or a hub id. Default: jigsaw or fragments.
        samples: Answers to draw, to keep the best of them; their agreement is the confidence.
        steps: Denoising steps.
        budget: Seconds, after which a solver that searches gives its best answer so far. Default: no limit.
        seed: The same seed gives the same answer.
        lock: An earlier assembly.json; pieces that have "locked": true there stay where they are.
        extra: Pieces that do not belong to this picture are allowed: they are left out and named. Needs --grid.
        objects: With "auto" the fragments may be of several objects, or flat pieces of several puzzles in one box: they
            are told apart, and each whole is put together by itself. Solvers mend and grow only.
        kind: What the pieces are, if the input does not show it: equal squares of a picture, flat pieces of any
            outline, or fragments of an object.
        colours: A folder of photos by the same names as those of the pieces, which are silhouettes: the colours.
        sheet: The sheet of paper that photographed pieces lie on, whose four corners are in view: a3, a4, a5, letter,
            or millimetres such as 210x297. Its corners undo the perspective and bring several photos to one scale.
            Default: one is looked for, and taken for a4 or letter; "none" leaves photos as they are.
        turn: Degrees by which to turn the whole clockwise once it is put together, if it lies the wrong way up; flat
            pieces only.
        next: Also print the ten surest joins that are still to make, for people who lay real pieces; joins of pieces
            that --lock tells are made already.
        json: Tell other programs how far it is: a line of JSON for every step on the standard output.
        pictures: Draw assembled.png, steps.gif and report.html, once the answer is written.
        palette: Show and write each fragment in a colour that tells it from the others, not in those of its scan.
        overwrite: Replace the folder if it holds an assembly already.
    """
    from diffassemble.assembly.kind import SolverOptions
    from diffassemble.cli.progress import Output, show_found
    from diffassemble.core import InputError
    from diffassemble.core.seeds import check_seed
    from diffassemble.io.assemblies import check_assembly_folder, read_locks
    from diffassemble.io.documents import parse_grid
    from diffassemble.io.puzzles import open_input
    from diffassemble.kinds import kind_of, make_solver

    check_seed(seed)
    if not pieces:
        raise InputError("no pieces given; pass a folder, a zip file or photos")
    folder = _folder(pieces[0], out)
    output = Output(json, document=folder is None)
    if folder is not None:
        check_assembly_folder(folder, overwrite)
    board = None if grid is None else parse_grid(grid)
    wishes = SolverOptions(model or "", samples, steps, budget, several=objects == "auto")
    make = cache(partial(make_solver, name=solver, options=wishes))
    show = partial(show_found, folder, overwrite, output.say)
    told = {"extra": extra, "make": make, "kind": kind, "more": pieces[1:], "colours": colours, "show": show}
    told["sheet"] = sheet
    puzzle = open_input(pieces[0], board, seed=seed, say=output.say, **told)
    joins = kind_of(puzzle).next_joins
    if next and joins is None:
        raise InputError(f"--next is for real pieces that people join; these are {puzzle.pieces.called}")
    in_palette = kind_of(puzzle).in_palette
    if palette and in_palette is None:
        raise InputError(f"--palette is for fragments of an object; these are {puzzle.pieces.called}")
    if turn:
        puzzle.check_turn(turn)
    chosen = make(puzzle.kind)
    if lock is not None:
        puzzle = replace(puzzle, locks=read_locks(lock, puzzle))
    puzzle, names = kind_of(puzzle).set_aside(puzzle) if extra else (puzzle, ())
    assembly = replace(output.assembled(puzzle, chosen, seed), extra=names)
    assembly = assembly.turned(turn) if turn else assembly
    settings = {"model": model or "the usual one", "samples": samples, "steps": steps, "budget": budget, "seed": seed}
    settings |= {"turned by": f"{turn}°"} if turn else {}
    shown = in_palette(assembly) if palette and in_palette is not None else assembly
    _deliver(shown, folder, overwrite, pictures, output, settings)
    if next and joins is not None:
        for number, join in enumerate(joins(assembly), 1):
            output.say(f"next join {number}: {join.words}")
            output.event("next", pieces=[puzzle.names[join.piece], puzzle.names[join.neighbour]], sure=join.sure)
    _check_joined(assembly)


def _check_joined(assembly: Answer) -> None:
    """Fail if a solver that may leave pieces out joined no two of them; what is locked was placed by a person."""
    from diffassemble.cli.main import Unsolved

    placed = [] if assembly.objects is None else [number for number in assembly.objects.tolist() if number >= 0]
    if assembly.objects is None or assembly.puzzle.locks is not None or len(set(placed)) < len(placed):
        return
    notes = Counter(note.removeprefix("left out: ").removeprefix("unplaced: ") for note in assembly.notes or () if note)
    why = f"; most often: {notes.most_common(1)[0][0]}" if notes else ""
    advice = "are they of one picture or object, and is --kind right?"
    raise Unsolved(f"no two of the {len(assembly.puzzle)} {assembly.puzzle.pieces.called} were joined{why}; {advice}")


def _folder(pieces: Path, out: Path | None) -> Path | None:
    """Where to write, or nowhere."""
    if out == Path("-"):
        return None
    source = pieces.resolve()
    return out or source.parent / f"{source.stem if source.is_file() else source.name}-solved"


def _deliver(
    assembly: Answer, folder: Path | None, overwrite: bool, pictures: bool, output: Output, settings: dict[str, Any]
) -> None:
    """Write what was found, and say so; drawings come after the answer."""
    from diffassemble.cli.progress import bar, joined, summary
    from diffassemble.core.thresholds import UPRIGHT
    from diffassemble.io.assemblies import ASSEMBLY_FILES, assembly_bytes, write_assembly

    output.say(summary(assembly))
    if assembly.puzzle.pieces.flat and assembly.puzzle.truth is None and not (assembly.upright or 0) >= UPRIGHT:
        output.say("if it lies the wrong way up: --turn 90, 180 or 270 turns the whole clockwise")
    if assembly.extra:
        output.say(f"left out {len(assembly.extra)} pieces that do not belong: {', '.join(assembly.extra)}")
    if folder is None:
        output.answer(assembly_bytes(assembly))
        return
    written: list[str] = []
    with bar("drawing") as progress:

        def wrote(name: str) -> None:
            if not written:
                output.say(f"wrote {name} to {folder}")
            written.append(name)
            progress(len(written) / len(ASSEMBLY_FILES))
            output.event("wrote", file=name)

        told = [(key, str(value)) for key, value in settings.items()]
        write_assembly(assembly, folder, overwrite, pictures=pictures, settings=told, wrote=wrote)
    if written[1:]:
        output.say(f"wrote {joined(written[1:])} beside it")
    output.event("done", out=str(folder), pieces=len(assembly.puzzle), extra=list(assembly.extra))
