"""What the paper says, copied from it: never measured here, and shown only in columns of its own.

Source: G. Scarpellini, S. Fiorini, F. Giuliari, P. Morerio, A. Del Bue, "DiffAssemble: A Unified Graph-Diffusion Model
for 2D and 3D Reassembly", CVPR 2024, Tables 3 and 4 and the figure "Time requirement to solve one puzzle". All figures
are the authors', on their machines, pictures and puzzles; "diffusion" is their DiffAssemble, "no diff." and "no equiv."
are the same without diffusion and without the equivariant encoder.

The paper compares directly, place and turn. It does not say how it scored methods that can't know which way is up.
Where it contradicts itself, the tables are followed: DiffAssemble on 8x8 faces is 87.66 there and 84.94 in the
supplementary; the citations of Yu and Huroyan are exchanged in Table 4, their names are taken as they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diffassemble.core import Board

FACES, PAINTINGS = "faces", "paintings"
# What the paper calls the pictures.
PAPER_NAMES = {FACES: "PuzzleCelebA", PAINTINGS: "PuzzleWikiArts"}


@dataclass(frozen=True)
class Quoted:
    """A method's figures on one kind of pictures, one for each grid of the table."""

    method: str
    pictures: str
    figures: tuple[float, ...]


@dataclass(frozen=True)
class PaperTable:
    """A table or figure of the paper: square grids, the share of pieces taken away, and percent right or seconds."""

    title: str
    grids: tuple[int, ...]
    quoted: tuple[Quoted, ...]
    missing: float = 0.0
    timed: bool = False

    @property
    def pictures(self) -> tuple[str, ...]:
        """The kinds of pictures, in the paper's order."""
        return tuple(dict.fromkeys(entry.pictures for entry in self.quoted))

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the paper's order."""
        return tuple(dict.fromkeys(entry.method for entry in self.quoted))

    def figures(self, method: str, pictures: str, boards: Sequence[Board]) -> tuple[float | None, ...]:
        """What the paper says of a method, board by board; none where it says nothing."""
        told = {
            Board(grid, grid): figure
            for entry in self.quoted
            if (entry.method, entry.pictures) == (method, pictures)
            for grid, figure in zip(self.grids, entry.figures, strict=True)
        }
        return tuple(told.get(board) for board in boards)


TABLES = {
    "3": PaperTable(
        title="Table 3, whole puzzles",
        grids=(6, 8, 10, 12),
        quoted=(
            Quoted("gallagher", FACES, (80.21, 55.18, 71.19, 69.81)),
            Quoted("yu", FACES, (98.63, 94.65, 98.33, 93.33)),
            Quoted("huroyan", FACES, (98.47, 97.45, 98.65, 97.08)),
            Quoted("no diff.", FACES, (99.43, 79.84, 99.05, 91.28)),
            Quoted("no equiv.", FACES, (96.12, 71.62, 91.98, 64.15)),
            Quoted("diffusion", FACES, (99.51, 87.66, 99.30, 97.76)),
            Quoted("gallagher", PAINTINGS, (71.88, 61.63, 54.15, 44.68)),
            Quoted("yu", PAINTINGS, (94.62, 92.95, 90.99, 89.88)),
            Quoted("huroyan", PAINTINGS, (92.69, 91.37, 89.74, 88.28)),
            Quoted("no diff.", PAINTINGS, (73.07, 54.70, 22.68, 18.27)),
            Quoted("no equiv.", PAINTINGS, (25.31, 14.63, 8.19, 4.96)),
            Quoted("diffusion", PAINTINGS, (90.65, 72.79, 63.33, 53.08)),
        ),
    ),
    "4": PaperTable(
        title="Table 4, 30 % of the pieces missing",
        grids=(6, 12),
        missing=0.3,
        quoted=(
            Quoted("gallagher", FACES, (33.28, 19.18)),
            Quoted("yu", FACES, (33.45, 21.78)),
            Quoted("huroyan", FACES, (18.18, 0.09)),
            Quoted("diffusion", FACES, (96.92, 76.49)),
            Quoted("gallagher", PAINTINGS, (32.19, 24.12)),
            Quoted("yu", PAINTINGS, (32.53, 24.65)),
            Quoted("huroyan", PAINTINGS, (17.14, 0.08)),
            Quoted("diffusion", PAINTINGS, (51.21, 27.09)),
        ),
    ),
    # 36, 144, 400, 625 and 900 pieces.
    "time": PaperTable(
        title="Seconds to solve one puzzle (quoted: diffusion on an RTX 4090)",
        grids=(6, 12, 20, 25, 30),
        timed=True,
        quoted=(
            Quoted("gallagher", FACES, (0.3, 4.4, 23.35, 34.11, 55.10)),
            Quoted("yu", FACES, (0.3, 3.0, 14.0, 42.0, 92.0)),
            Quoted("huroyan", FACES, (1.0, 8.0, 35.0, 72.0, 152.0)),
            Quoted("diffusion", FACES, (1.0, 1.0, 2.0, 3.0, 5.0)),
        ),
    ),
}
