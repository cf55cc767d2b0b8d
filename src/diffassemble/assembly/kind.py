"""What a kind of pieces is: everything that differs between pieces of a picture and fragments of an object.

Each slice builds its own `Kind`; `diffassemble.kinds` holds the table of them. Files, reports, commands and the page
call the puzzle's kind and never depend on the type of its pieces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from jaxtyping import Float
from PIL import Image
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.core.board import Board
from diffassemble.core.limits import LIMITS
from diffassemble.core.matches import Matches
from diffassemble.core.poses import Poses
from diffassemble.core.puzzle import InputError, Puzzle
from diffassemble.core.solver import Solver


@dataclass(frozen=True)
class SolverOptions:
    """Options of solvers; each solver reads those that concern it."""

    model: str = ""
    """a bundled name, a folder or a hub id; empty for the kind's default"""
    samples: int = 8
    """answers to draw, to keep the best of them"""
    steps: int = 20
    """denoising steps"""
    budget: float = math.inf
    """seconds, after which solvers that search answer with the best so far"""
    several: bool = False
    """the pieces may be of more than one whole"""

    def __post_init__(self) -> None:
        if self.samples < 1 or self.steps < 1:
            raise InputError(f"samples and steps must be 1 or more, not {self.samples} and {self.steps}")
        if self.samples > LIMITS.samples or self.steps > LIMITS.steps:
            most = f"at most {LIMITS.samples:,} samples and {LIMITS.steps:,} steps are drawn"
            raise InputError(f"{most}, not {self.samples} and {self.steps}; ask for fewer")
        if not self.budget > 0:
            raise InputError(f"budget {self.budget:g} leaves no time to search; pass more than 0 seconds")


@dataclass(frozen=True)
class OpenOptions:
    """What is known about input beyond its files."""

    board: Board | None = None
    """the grid of a picture; that of a puzzle folder is replaced by it"""
    extra: bool = False
    """there may be more pieces than cells"""
    make: Callable[[str], Solver] | None = None
    """makes the solver, for a kind, that finds what is not given by trying; without it, a quick one"""
    kind: str | None = None
    """the kind of the pieces, if it is given"""
    photographed: bool = False
    """pictures are photographs of loose pieces, also if a board is given"""
    size: int | None = None
    """pixels of a side of square pieces that are cut out of a photograph; as many as they have there, if not given"""
    more: tuple[Path, ...] = ()
    """further photographs of the same pieces"""
    colours: Path | None = None
    """a folder of photographs that show the colours of the pieces whose outlines others show"""
    sheet: str = "auto"
    """the format of the sheet of paper under the pieces in photographs; "auto": it is detected"""
    show: Callable[[Image.Image], None] = lambda picture: None
    """is shown what was found in photographs, also if that is then refused"""
    seed: int = 0
    say: Callable[[str], None] = lambda text: None
    """receives a line for everything that was detected"""


class Join(NamedTuple):
    """Two pieces that touch, a picture of how, and what to do, if it is a join to make."""

    piece: int
    neighbour: int
    picture: Image.Image
    words: str = ""


class NextJoin(NamedTuple):
    """Two pieces to join, the probability of that join, and how, in words."""

    piece: int
    neighbour: int
    sure: float
    words: str


class Drawing(NamedTuple):
    """How puzzles and assemblies are drawn."""

    pieces: Callable[[Puzzle], Image.Image]
    """the pieces as they were given"""
    assembly: Callable[[Answer], Image.Image]
    """what was assembled, and nothing else"""
    before_after: Callable[[Answer], Image.Image]
    """the pieces as they were given beside what became of them, captioned"""
    confidence: Callable[[Answer], Image.Image]
    """what was assembled in the colours of how sure each piece is, with a legend"""
    animation: Callable[[Answer, int], list[Image.Image]]
    """that many frames of pieces on their way, from the history; the last one shows the assembly"""
    standing: Callable[[Answer], Answer] = lambda assembly: assembly
    """the assembly as it is to be drawn, if it can be turned upright"""
    views: Callable[[Answer], Image.Image | None] = lambda assembly: None
    """what was assembled from several sides, captioned, if one does not show all"""
    joins: Callable[[Answer], Sequence[Join]] = lambda assembly: ()
    """how pieces touch each other, the least sure first, where that is worth looking at"""
    plan: Callable[[Answer], Image.Image | None] = lambda assembly: None
    """what was assembled with every piece's number and turn, if people have real pieces to lay by it"""
    next_joins: Callable[[Answer], Sequence[Join]] = lambda assembly: ()
    """the surest joins that are still to make, if people make them"""


class Score(NamedTuple):
    """Pieces at their true places: as they are, and after the best motion of the whole, which is turned by degrees."""

    right: int
    free: int
    turned: int = 0


@dataclass(frozen=True)
class Files:
    """How pieces of one kind, and where they are, become files; what most kinds do alike has a default."""

    read: Callable[[Any, OpenOptions], Puzzle]
    """the puzzle in an `io.detect.Input` of this kind"""
    read_folder: Callable[[Path, dict[str, Any], Board | None], Puzzle]
    """the puzzle of a puzzle folder, whose puzzle.json is read already; a board replaces the one in it"""
    folder_contents: Callable[[Puzzle, Path, str], Iterator[tuple[str, bytes]]]
    """names and contents of a puzzle folder's files, with that ending if there is a choice; refuses at once"""
    matrices: Callable[[Puzzle, Poses], Float[Tensor, "n 4 4"]]
    """what moves each piece to its place, as other programs read it"""
    places: Callable[[Puzzle, Poses], list[dict[str, Any]]]
    """fields of each piece in an assembly's document, beside its matrix"""
    read_poses: Callable[[Puzzle, list[dict[str, Any]], Path], Poses]
    """the poses in the records of an assembly's document"""
    fields: Callable[[Puzzle], dict[str, Any]] = lambda puzzle: {}
    """fields of the whole in an assembly's document"""
    further: Callable[[Answer], Iterator[tuple[str, bytes]]] = lambda assembly: iter(())
    """names and contents of files that an assembly folder has beside document and pictures"""


@dataclass(frozen=True)
class Kind:
    """One kind of pieces: its words, solvers, files, drawings and score."""

    name: str
    piece: str
    """what one piece is called in messages"""
    whole: str
    """what the pieces make"""

    matches: Callable[[Puzzle], Matches]
    """which pieces may touch, and their relative poses"""
    solvers: Mapping[str, Callable[[SolverOptions], Solver]]
    default_solver: str
    default_model: str
    prepare: Callable[[], None]
    """compiles what solving and drawing compile at their first use; the result is kept on disk"""
    files: Files
    drawing: Callable[[], Drawing]
    count_right: Callable[[Answer, Poses], Score]
    """an assembly against the truth"""
    several: frozenset[str] = frozenset()
    """solvers that separate the pieces of several wholes"""
    next_joins: Callable[[Answer], Sequence[NextJoin]] | None = None
    """the most certain joins that are still to make, if people make them"""
    in_palette: Callable[[Answer], Answer] | None = None
    """the assembly without its pieces' own colours, so that each is shown in a colour of its own"""

    def score(self, assembly: Answer) -> str | None:
        """How much is right, in words, if the truth is known."""
        truth, count = assembly.puzzle.truth, len(assembly.puzzle)
        if truth is None:
            return None
        right, free, by = self.count_right(assembly, truth)
        if free == right:
            return f"{100 * right / count:.1f} % of the {self.piece}s right"
        fitting = f"all {count} {self.piece}s" if free == count else f"{free} of {count} {self.piece}s"
        turned = f", turned by {by}° (--turn {360 - by} turns them)" if by else " relative to the largest"
        return f"{fitting} fit together{turned}"
