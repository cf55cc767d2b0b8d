"""The kinds of pieces and their solvers by name."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from numba.core import event

from diffassemble.core import Assembly, FragmentPieces, ImagePieces, InputError, Pieces, Puzzle, Solver
from diffassemble.core.solver import assemble
from diffassemble.fragments.chance import IdentitySolver, RandomSolver
from diffassemble.fragments.diffusion import FragmentDiffusionSolver
from diffassemble.fragments.hybrid import CanonicalRotation, FragmentHybridSolver
from diffassemble.fragments.mend import MendSolver
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.orientation import OrientationModel
from diffassemble.network.denoiser import Denoiser
from diffassemble.network.encoders.points import PointEncoder
from diffassemble.network.loading import load_network
from diffassemble.network.pretrained import bundled_models
from diffassemble.squares.baselines.gallagher import GallagherSolver
from diffassemble.squares.baselines.huroyan import HuroyanSolver
from diffassemble.squares.baselines.yu import YuSolver
from diffassemble.squares.critic import Critic, CriticReranker
from diffassemble.squares.diffusion import DiffusionSolver
from diffassemble.squares.edge_model import CompareEdges, EdgeModel
from diffassemble.squares.hybrid import HybridSolver
from diffassemble.squares.upright import Upright, Uprighter, turn_to_upright

# ----------------------------------------------------------------------------------------------------------------------
# A word to whoever waits while numba compiles: it does so on the first call, then keeps the result on disk.


_OURS = "diffassemble."
COMPILING = "numba:compile"
"""the event that numba tells of when nothing was found on disk"""


class Announcer(event.Listener):
    """Says once, on the error stream, that compilation takes a while."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: event.Event) -> None:
        if not self.said and event.data["dispatcher"].py_func.__module__.startswith(_OURS):
            self.said = True
            print("compiling the search, once; about 15 s", file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        """What matters was said at the start."""


@cache
def announce_compilation() -> None:
    """From now on, tell when something of ours has to be compiled; code found on disk needs no word."""
    event.register(COMPILING, Announcer())


# ----------------------------------------------------------------------------------------------------------------------
# Solvers by name.


UPRIGHT, EDGE_MODEL, CRITIC = "upright", "edge-model", "critic"
FRACTURE_MATCHING, ORIENTATION = "fracture-matching", "orientation"
# These only compare borders, which can't tell which way is up; where they know it, the classifier told them.
BORDER_SOLVERS = frozenset({"gallagher", "yu", "huroyan"})
# What tables about pictures compare, if nothing else is asked for.
PICTURE_SOLVERS = ("diffusion", "hybrid", "gallagher", "yu", "huroyan")
# The solver and the model for each kind of pieces, if nobody says otherwise.
DEFAULTS: dict[type, tuple[str, str]] = {ImagePieces: ("hybrid", "jigsaw"), FragmentPieces: ("mend", "fragments")}
# These know nothing; they show what chance gives.
CHANCE_SOLVERS = ("identity", "random")


def bundled_uprighter() -> Uprighter | None:
    """The classifier that comes with the package; without it, wholes stay as they were assembled."""
    if UPRIGHT not in bundled_models():
        return None
    return partial(turn_to_upright, Upright.from_pretrained(UPRIGHT))


def bundled_orientation() -> CanonicalRotation | None:
    """The network that comes with the package and stands objects up; without it, diffusion says how they stand."""
    return OrientationModel.from_pretrained(ORIENTATION).canonical_rotation if ORIENTATION in bundled_models() else None


def bundled_reranker() -> CriticReranker | None:
    """A look by the critic that comes with the package; without it, what borders can't decide stays as it is."""
    return CriticReranker(Critic.from_pretrained(CRITIC)) if CRITIC in bundled_models() else None


def bundled_edge_model() -> CompareEdges | None:
    """The learned edge compatibility that comes with the package; without it, border gradients alone tell what fits."""
    if EDGE_MODEL not in bundled_models():
        return None
    return EdgeModel.from_pretrained(EDGE_MODEL).compare


@dataclass(frozen=True)
class SolverOptions:
    """What solvers are asked for; each takes what concerns it. `budget`: seconds a puzzle, of those that search.

    `several`: the fragments may be of more than one object.
    """

    model: str = "jigsaw"
    samples: int = 8
    steps: int = 20
    budget: float = math.inf
    several: bool = False


def _diffusion(options: SolverOptions) -> Solver:
    network = load_network(options.model)
    if network.space.translation_width == 3:
        return FragmentDiffusionSolver(network, options.steps, options.samples)
    return DiffusionSolver(network, options.steps, options.samples, upright=bundled_uprighter())


def _hybrid(options: SolverOptions) -> Solver:
    network = Denoiser.from_pretrained(options.model)
    if isinstance(network.encoder, PointEncoder):
        diffusion = FragmentDiffusionSolver(network, options.steps, options.samples)
        return FragmentHybridSolver(_mend(options), diffusion, bundled_orientation())
    return HybridSolver(
        network,
        options.steps,
        options.samples,
        upright=bundled_uprighter(),
        budget=options.budget,
        edge_model=bundled_edge_model(),
        reranker=bundled_reranker(),
    )


def _gallagher(options: SolverOptions) -> Solver:
    return GallagherSolver(options.budget, bundled_uprighter())


def _yu(options: SolverOptions) -> Solver:
    return YuSolver(options.budget, bundled_uprighter())


def _huroyan(options: SolverOptions) -> Solver:
    return HuroyanSolver(options.budget, bundled_uprighter())


def _mend(options: SolverOptions) -> Solver:
    return MendSolver(FractureModels.from_pretrained(FRACTURE_MATCHING), options.budget, options.several)


def _identity(options: SolverOptions) -> Solver:
    return IdentitySolver()


def _random(options: SolverOptions) -> Solver:
    return RandomSolver()


SOLVERS: dict[str, Callable[[SolverOptions], Solver]] = {
    "diffusion": _diffusion,
    "hybrid": _hybrid,
    "gallagher": _gallagher,
    "yu": _yu,
    "huroyan": _huroyan,
    "mend": _mend,
    "identity": _identity,
    "random": _random,
}


def make_solver(
    name: str,
    *,
    model: str = "jigsaw",
    samples: int = 8,
    steps: int = 20,
    budget: float = math.inf,
    several: bool = False,
) -> Solver:
    """A solver with its weights loaded; `model` is a bundled name, a folder or a hub id.

    After `budget` seconds solvers that search answer with the best so far. With `several` fragments may be of more than
    one object.
    """
    if name not in SOLVERS:
        raise InputError(f"no solver '{name}'; use one of: {', '.join(SOLVERS)}")
    if samples < 1 or steps < 1:
        raise InputError(f"samples and steps must be 1 or more, not {samples} and {steps}")
    if not budget > 0:
        raise InputError(f"budget {budget:g} leaves no time to search; pass more than 0 seconds")
    if several and name != "mend":
        raise InputError(f"solver '{name}' knows one object only; several are told apart by mend")
    announce_compilation()
    return SOLVERS[name](SolverOptions(model, samples, steps, budget, several))


def solver_for(
    pieces: Pieces,
    name: str | None = None,
    *,
    model: str | None = None,
    samples: int = 8,
    steps: int = 20,
    budget: float = math.inf,
    several: bool = False,
) -> Solver:
    """A solver for these pieces; what is not given is what suits their kind."""
    usual, weights = DEFAULTS[type(pieces)]
    return make_solver(
        name or usual, model=model or weights, samples=samples, steps=steps, budget=budget, several=several
    )


# ----------------------------------------------------------------------------------------------------------------------
# The front door's verb: drain a solver's steps into an assembly.


def solve(
    puzzle: Puzzle,
    solver: str | None = None,
    *,
    model: str | None = None,
    samples: int = 8,
    steps: int = 20,
    budget: float = math.inf,
    seed: int = 0,
) -> Assembly:
    """Put a puzzle together; the same seed gives the same answer. Solver and model default to what suits the pieces.

    After `budget` seconds solvers that search answer with the best so far.
    """
    chosen = solver_for(puzzle.pieces, solver, model=model, samples=samples, steps=steps, budget=budget)
    return assemble(puzzle, chosen, seed)
