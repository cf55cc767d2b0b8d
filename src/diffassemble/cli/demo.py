"""`diffassemble demo`: pictures cut, one of them into a jigsaw, and a bowl broken; solved, scored, shown; offline."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from diffassemble.cli.arguments import Folder, Overwrite, Seed

# Pictures of scikit-image: how many jigsaw pieces, or rows and columns, they are cut into; and a made-up solid with the
# number of its fragments.
JIGSAWS = {"coffee": 60}
SAMPLES = {"astronaut": (6, 6), "chelsea": (6, 8)}
OBJECTS = {"bowl": 7}
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
    names = (*(f"{name}-tabs" for name in JIGSAWS), *SAMPLES, *OBJECTS)
    check_free(out, names, overwrite)
    picture = {name: str(files("skimage.data") / f"{name}.png") for name in (*JIGSAWS, *SAMPLES)}
    with fresh_folder(out, names, overwrite) as part:
        squares = make_solver("squares", options=SolverOptions(model))
        made = []
        for name, count in JIGSAWS.items():
            puzzle = cut_shape(picture[name], "tabs", count, seed)
            made.append((f"{name}, cut into {count} pieces with tabs, turned by any angle", puzzle))
        for name, (rows, cols) in SAMPLES.items():
            made.append((f"{name}, cut {rows}x{cols}", cut_image(picture[name], rows, cols, seed)))
        for name, count in OBJECTS.items():
            made.append((f"{name}, broken into {count} pieces", fracture_file(name, count, seed)))
        for folder, (words, puzzle) in zip(names, made, strict=True):
            print(words)
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
