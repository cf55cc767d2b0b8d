"""`diffassemble demo`: sample pictures cut and a bowl broken, solved, scored and shown; needs no data, no network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from diffassemble.core import Assembly, Puzzle

# Pictures that scikit-image brings with it, with the rows and columns they are cut into.
SAMPLES = {"astronaut": (6, 6), "chelsea": (6, 8)}
# Solids made by chance, with the number of pieces they are broken into.
OBJECTS = {"bowl": 7}
PICTURES = ("before-after.png", "confidence.png")


def demo(
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("demo"),
    model: Annotated[str, tyro.conf.arg(metavar="NAME")] = "jigsaw",
    seed: int = 0,
    overwrite: bool = False,
) -> None:
    """Cut two sample pictures, break a bowl, put all together again, score and draw the result.

    Args:
        out: The folder to write.
        model: The weights for pictures: a bundled name, a folder or a hub id.
        seed: The same seed gives the same puzzles and the same answers.
        overwrite: Replace the folder if it holds an earlier demo.
    """
    from diffassemble.cli.progress import Output
    from diffassemble.core.kind import SolverOptions
    from diffassemble.core.seeds import check_seed
    from diffassemble.files.atomic import check_free, fresh_folder
    from diffassemble.fragments.shapes.catalogue import fracture_file
    from diffassemble.kinds import make_solver

    check_seed(seed)
    names = (*SAMPLES, *OBJECTS)
    check_free(out, names, overwrite)
    with fresh_folder(out, names, overwrite) as part:
        solver = make_solver("squares", options=SolverOptions(model))
        for name, (rows, cols) in SAMPLES.items():
            print(f"{name}, cut {rows}x{cols}")
            _show(Output().assembled(_sample(name, rows, cols, seed), solver, seed), part / name)
        for name, pieces in OBJECTS.items():
            print(f"{name}, broken into {pieces} pieces")
            puzzle = fracture_file(name, pieces, seed)
            _show(Output().assembled(puzzle, make_solver(puzzle.kind), seed), part / name)
    print("look at these:")
    for name in names:
        for picture in (PICTURES[0], "solved/steps.gif", PICTURES[1]):
            print(f"  {out / name / picture}")
    print(f"the puzzles are there too: diffassemble solve {out / names[0] / 'puzzle'}")


def _show(assembly: Assembly, folder: Path) -> None:
    from diffassemble.cli.progress import summary

    print("  " + summary(assembly).replace("\n", "\n  "))
    _write(assembly, folder)


def _sample(name: str, rows: int, cols: int, seed: int) -> Puzzle:
    """The puzzle of a sample picture."""
    import skimage.data
    import torch

    from diffassemble.core import Board
    from diffassemble.squares.cut import cut_picture

    picture = torch.from_numpy(getattr(skimage.data, name)()).movedim(-1, 0).float() / 255
    return cut_picture(picture, Board(rows, cols), torch.Generator().manual_seed(seed))


def _write(assembly: Assembly, folder: Path) -> None:
    """The puzzle, the assembly and two pictures of what was done."""
    from diffassemble.files.assemblies import write_assembly
    from diffassemble.files.atomic import write_file
    from diffassemble.files.puzzles import write_puzzle

    write_puzzle(assembly.puzzle, folder / "puzzle")
    pictures = write_assembly(assembly, folder / "solved")
    for name, content in zip(PICTURES, (pictures.before_after, pictures.confidence), strict=True):
        write_file(folder / name, content)


def run(argv: list[str]) -> None:
    """Parse the arguments and show."""
    tyro.cli(demo, args=argv, prog="diffassemble demo")
