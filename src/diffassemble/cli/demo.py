"""`diffassemble demo`: pictures cut, one of them into a jigsaw, and a bowl broken; solved, scored, shown; offline."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from diffassemble.cli.arguments import Folder, Overwrite, Seed

# Folders; pictures of scikit-image, with the number of pieces with tabs or rows and columns that they are cut into,
# or a made-up solid with the number of its fragments.
SAMPLES: dict[str, tuple[str, int | tuple[int, int]]] = {
    "coffee-tabs": ("coffee", 60),
    "astronaut": ("astronaut", (6, 6)),
    "chelsea": ("chelsea", (6, 8)),
    "bowl": ("bowl", 7),
}
PICTURES = ("before-after.png", "confidence.png")


def demo(
    out: Folder = Path("demo"),
    model: Annotated[str, arg(metavar="NAME")] = "jigsaw",
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Cut a jigsaw and two grids from sample pictures, break a bowl, solve all of them, score and draw the answers.

    Args:
        model: The weights for pictures: a bundled name, a folder or a hub id.
    """
    from diffassemble.assembly.kind import SolverOptions
    from diffassemble.cli.progress import Output, summary
    from diffassemble.core.seeds import check_seed
    from diffassemble.fragments.shapes import fracture_file
    from diffassemble.io.assemblies import write_assembly
    from diffassemble.io.atomic import check_free, fresh_folder, write_file
    from diffassemble.io.puzzles import write_puzzle
    from diffassemble.kinds import make_solver
    from diffassemble.outlines.cut import cut_shape
    from diffassemble.squares.cut import cut_image

    check_seed(seed)
    names = tuple(SAMPLES)
    check_free(out, names, overwrite)
    with fresh_folder(out, names, overwrite) as part:
        squares = make_solver("squares", options=SolverOptions(model))
        for folder, (name, count) in SAMPLES.items():
            picture = str(files("skimage.data") / f"{name}.png")
            if isinstance(count, tuple):
                print(f"{name}, cut {count[0]}x{count[1]}")
                puzzle = cut_image(picture, *count, seed)
            elif folder.endswith("-tabs"):
                print(f"{name}, cut into {count} pieces with tabs, turned by any angle")
                puzzle = cut_shape(picture, "tabs", count, seed)
            else:
                print(f"{name}, broken into {count} pieces")
                puzzle = fracture_file(name, count, seed)
            solver = squares if puzzle.kind == "squares" else make_solver(puzzle.kind)
            assembly = Output().assembled(puzzle, solver, seed)
            print("  " + summary(assembly).replace("\n", "\n  "))
            write_puzzle(puzzle, part / folder / "puzzle")
            pictures = write_assembly(assembly, part / folder / "solved")
            for name, content in zip(PICTURES, (pictures.before_after, pictures.confidence), strict=True):
                write_file(part / folder / name, content)
    print("look at these:")
    for name in names:
        for shown in (PICTURES[0], "solved/steps.gif", PICTURES[1]):
            print(f"  {out / name / shown}")
    print(f"the puzzles are there too: diffassemble solve {out / names[0] / 'puzzle'}")
