"""`diffassemble demo`: pictures cut, one of them into a jigsaw, and a bowl broken; solved, scored, shown; offline."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from diffassemble.core import Puzzle, Solver

# Pictures that scikit-image brings with it, with the rows and columns they are cut into.
SAMPLES = {"astronaut": (6, 6), "chelsea": (6, 8)}
# Those that are cut into pieces with tabs, with how many; they are shown first.
JIGSAWS = {"coffee": 60}
# Solids made by chance, with the number of pieces they are broken into.
OBJECTS = {"bowl": 7}
PICTURES = ("before-after.png", "confidence.png")


def demo(
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("demo"),
    model: Annotated[str, tyro.conf.arg(metavar="NAME")] = "jigsaw",
    seed: int = 0,
    overwrite: bool = False,
) -> None:
    """Cut a jigsaw and two grids from sample pictures, break a bowl, put all together again, score and draw the result.

    Args:
        out: The folder to write.
        model: The weights for pictures: a bundled name, a folder or a hub id.
        seed: The same seed gives the same puzzles and the same answers.
        overwrite: Replace the folder if it holds an earlier demo.
    """
    from diffassemble.assembly.kind import SolverOptions
    from diffassemble.core.seeds import check_seed
    from diffassemble.fragments.shapes import fracture_file
    from diffassemble.io.atomic import check_free, fresh_folder
    from diffassemble.kinds import make_solver

    check_seed(seed)
    jigsaws = {f"{name}-tabs": (name, pieces) for name, pieces in JIGSAWS.items()}
    names = (*jigsaws, *SAMPLES, *OBJECTS)
    check_free(out, names, overwrite)
    with fresh_folder(out, names, overwrite) as part:
        solver = make_solver("squares", options=SolverOptions(model))
        for folder, (name, pieces) in jigsaws.items():
            print(f"{name}, cut into {pieces} pieces with tabs, turned by any angle")
            _show(_jigsaw(name, pieces, seed), make_solver("outlines"), seed, part / folder)
        for name, (rows, cols) in SAMPLES.items():
            print(f"{name}, cut {rows}x{cols}")
            _show(_sample(name, rows, cols, seed), solver, seed, part / name)
        for name, pieces in OBJECTS.items():
            print(f"{name}, broken into {pieces} pieces")
            _show(fracture_file(name, pieces, seed), make_solver("fragments"), seed, part / name)
    print("look at these:")
    for name in names:
        for picture in (PICTURES[0], "solved/steps.gif", PICTURES[1]):
            print(f"  {out / name / picture}")
    print(f"the puzzles are there too: diffassemble solve {out / names[0] / 'puzzle'}")


def _sample(name: str, rows: int, cols: int, seed: int) -> Puzzle:
    """The puzzle of a sample picture."""
    from diffassemble.squares.cut import cut_image

    return cut_image(str(files("skimage.data") / f"{name}.png"), rows, cols, seed)


def _jigsaw(name: str, pieces: int, seed: int) -> Puzzle:
    """The jigsaw of a sample picture."""
    from diffassemble.outlines.cut import cut_shape

    return cut_shape(str(files("skimage.data") / f"{name}.png"), "tabs", pieces, seed)


def _show(puzzle: Puzzle, solver: Solver, seed: int, folder: Path) -> None:
    """Solve it, tell how well, and write the puzzle, the assembly and two pictures of what was done."""
    from diffassemble.cli.progress import Output, summary
    from diffassemble.io.assemblies import write_assembly
    from diffassemble.io.atomic import write_file
    from diffassemble.io.puzzles import write_puzzle

    assembly = Output().assembled(puzzle, solver, seed)
    print("  " + summary(assembly).replace("\n", "\n  "))
    write_puzzle(puzzle, folder / "puzzle")
    pictures = write_assembly(assembly, folder / "solved")
    for name, content in zip(PICTURES, (pictures.before_after, pictures.confidence), strict=True):
        write_file(folder / name, content)
