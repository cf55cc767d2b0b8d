"""What others say of broken objects, copied from them: never measured here, and shown only in columns of their own.

Sources: G. Scarpellini, S. Fiorini, F. Giuliari, P. Morerio, A. Del Bue, "DiffAssemble: A Unified Graph-Diffusion Model
for 2D and 3D Reassembly", CVPR 2024, Tables 1 and 2 and the supplementary's table of missing pieces; for later work
PuzzleFusion++ (2025) and GARF (2025; volume-constrained fractures, the largest piece's pose given). All figures are on
Breaking Bad's everyday objects, 2 to 20 pieces, and on their authors' machines.

"diffusion" is the paper's DiffAssemble; "plain" and "invariant" have such an encoder, "gcn" such layers, "six-d"
rotations as six numbers, "no-chamfer" no Chamfer loss, "no-diffusion" a single step. For missing pieces the caption
says 8 to 20 pieces, the text 10 to 20.
"""

from __future__ import annotations

from dataclasses import dataclass

CHANCE = ("identity", "random")


@dataclass(frozen=True)
class QuotedFigures:
    """A method's RMSE(R) in degrees, RMSE(T) × 100 and part accuracy in percent, with a share of pieces missing."""

    method: str
    rmse_r: float
    rmse_t: float
    part_accuracy: float
    missing: float = 0.0


@dataclass(frozen=True)
class FragmentTable:
    """A table of the paper: the rows we measure, the objects' number of pieces, and the figures that are quoted."""

    title: str
    methods: tuple[str, ...]
    quoted: tuple[QuotedFigures, ...]
    pieces: tuple[int, int] = (2, 20)
    digits: int = 2

    @property
    def missing(self) -> tuple[float, ...]:
        """The shares of pieces taken away, in the paper's order."""
        return tuple(dict.fromkeys(entry.missing for entry in self.quoted))

    def figures(self, method: str, missing: float) -> QuotedFigures | None:
        """What is said of a method, if anything."""
        return next((one for one in self.quoted if (one.method, one.missing) == (method, missing)), None)


FRAGMENT_TABLES = {
    "1": FragmentTable(
        title="Table 1, everyday objects",
        methods=(*CHANCE, "global", "lstm", "dgl", "nsm", "se3-equiv", "diffusion"),
        digits=1,
        quoted=(
            QuotedFigures("global", 81.6, 15.2, 17.5),
            QuotedFigures("lstm", 87.4, 15.8, 11.3),
            QuotedFigures("dgl", 81.4, 14.9, 25.4),
            QuotedFigures("nsm", 83.3, 15.3, 10.6),
            QuotedFigures("se3-equiv", 77.9, 16.7, 8.1),
            QuotedFigures("no-diffusion", 83.6, 17.1, 3.1),
            QuotedFigures("plain", 81.7, 17.0, 18.3),
            QuotedFigures("diffusion", 73.3, 14.8, 27.5),
            QuotedFigures("puzzlefusion++", 38.5, 8.0, 70.2),
            QuotedFigures("garf (anchor)", 5.3, 1.1, 95.7),
        ),
    ),
    "2": FragmentTable(
        title="Table 2, ablations on everyday objects",
        methods=(*CHANCE, "plain", "invariant", "six-d", "no-chamfer", "diffusion", "no-diffusion", "gcn"),
        quoted=(
            QuotedFigures("plain", 81.68, 17.04, 18.32),
            QuotedFigures("invariant", 77.06, 18.09, 14.27),
            QuotedFigures("six-d", 75.60, 18.80, 18.50),
            QuotedFigures("no-chamfer", 72.75, 14.78, 24.10),
            QuotedFigures("diffusion", 73.34, 14.82, 27.48),
            QuotedFigures("no-diffusion", 83.60, 17.12, 3.10),
            QuotedFigures("gcn", 74.56, 15.79, 21.33),
        ),
    ),
    "missing-3d": FragmentTable(
        title="Missing pieces, everyday objects of 8 to 20 pieces",
        methods=(*CHANCE, "global", "dgl", "lstm", "se3-equiv", "diffusion"),
        pieces=(8, 20),
        quoted=(
            QuotedFigures("global", 83.00, 18.74, 7.02, 0.0),
            QuotedFigures("dgl", 84.56, 18.26, 9.72, 0.0),
            QuotedFigures("lstm", 88.26, 19.64, 4.78, 0.0),
            QuotedFigures("se3-equiv", 81.82, 18.50, 6.74, 0.0),
            QuotedFigures("diffusion", 80.13, 19.02, 11.61, 0.0),
            QuotedFigures("global", 83.86, 18.76, 6.78, 0.1),
            QuotedFigures("dgl", 84.74, 18.98, 8.42, 0.1),
            QuotedFigures("lstm", 88.40, 19.74, 4.96, 0.1),
            QuotedFigures("se3-equiv", 82.96, 18.54, 6.58, 0.1),
            QuotedFigures("diffusion", 80.32, 19.32, 11.20, 0.1),
            QuotedFigures("global", 84.20, 18.86, 6.66, 0.2),
            QuotedFigures("dgl", 85.01, 19.80, 7.34, 0.2),
            QuotedFigures("lstm", 88.72, 19.90, 4.88, 0.2),
            QuotedFigures("se3-equiv", 82.52, 18.72, 6.54, 0.2),
            QuotedFigures("diffusion", 80.37, 19.52, 10.67, 0.2),
            QuotedFigures("global", 84.76, 18.96, 6.62, 0.3),
            QuotedFigures("dgl", 85.64, 20.68, 6.56, 0.3),
            QuotedFigures("lstm", 88.96, 20.01, 4.36, 0.3),
            QuotedFigures("se3-equiv", 82.88, 19.48, 6.51, 0.3),
            QuotedFigures("diffusion", 80.46, 19.84, 10.43, 0.3),
        ),
    ),
}
