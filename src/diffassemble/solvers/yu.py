"""R. Yu, C. Russell, L. Agapito, "Solving Jigsaw Puzzles with Linear Programming", BMVC 2016 (arXiv 1511.04472).

The paper's steps: the best match of every side by Mahalanobis gradient compatibility, weighed by how much worse its
rivals are (section 3.1, `matches`); linear programs over the places of all pieces at once, which reject matches until
the rest agrees (sections 3.2 to 3.4, `consistent`); unknown turns by copies of each piece in all of them (section 3.5,
`linear_program`); what still lies apart is assembled like Gallagher's trees, trimmed to the frame and filled in.

The authors run several settings and take the best result; so does this solver, with four readings of which matches are
to be believed. Missing pieces, of which the paper does not speak, leave sides without a match that is clear.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from diffassemble.compatibility.image import Borders
from diffassemble.puzzle import Puzzle, Step
from diffassemble.solvers.consistent import Caution, join_consistent
from diffassemble.solvers.finishing import finish
from diffassemble.solvers.framing import FramedForest
from diffassemble.solvers.matches import Candidates
from diffassemble.solvers.orientation import Uprighter
from diffassemble.solvers.showing import in_content_order, lay_out
from diffassemble.solvers.trimming import Placement, place, trim

MATCHES = 40
TRUSTED = 8
# Few but clear matches; all mutual ones; those on cycles only; cycles or not.
_READINGS = (Caution(clear=0.8), Caution(clear=1.0), Caution(sure=0.0), Caution(sure=1.0))


@dataclass(frozen=True)
class YuSolver:
    """Finds the places of all pieces at once, in which the clearest matches of sides hold, by linear programs.

    Borders can't tell which way is up: `upright` does; without it, the whole stays as it was assembled. After `budget`
    seconds no more programs are solved, and what is loose is put down as it comes.
    """

    budget: float = math.inf
    upright: Uprighter | None = None
    name: str = "yu"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the trees after every linear program, then the final placement; nothing is random.

        The answer does not depend on the order in which the pieces are listed.
        """
        until = time.monotonic() + self.budget
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, until))

    def _ordered_steps(self, puzzle: Puzzle, until: float) -> Iterator[Step]:
        board = puzzle.board
        borders = Borders.of(puzzle.pixels)
        partners = borders.best(MATCHES)
        candidates = Candidates.of(partners)
        best: list[Placement] = []
        for number, reading in enumerate(_READINGS):
            framed = FramedForest.of(board, np.zeros(len(puzzle), np.int64))
            for _ in join_consistent(framed, candidates, np.ones(candidates.side.shape, bool), reading, until):
                yield Step(lay_out(framed.forest, board), done=(number + 0.5) / len(_READINGS))
            framed.join(candidates.probable())
            trimmed = trim(framed.forest, board, candidates, borders)
            if not best or trimmed[0].worth > best[0].worth:
                best = trimmed
            if time.monotonic() > until:
                break
        placement = place(best, board, candidates, borders, until)
        yield from finish(puzzle, placement.cells, placement.turns, partners.first(TRUSTED), self.upright)
