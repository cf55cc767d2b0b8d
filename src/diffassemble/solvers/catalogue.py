"""Solvers by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from diffassemble.compatibility.judging import Judge
from diffassemble.encoders.points import PointEncoder
from diffassemble.model import Denoiser, bundled_models
from diffassemble.model.critic import Critic
from diffassemble.model.fracture import FractureMatcher
from diffassemble.model.loading import load_network
from diffassemble.model.posture import Posture
from diffassemble.model.side_judge import SideJudge
from diffassemble.model.upright import Upright
from diffassemble.puzzle import FragmentPieces, ImagePieces, InputError, Pieces, Solver
from diffassemble.solvers.chance import IdentitySolver, RandomSolver
from diffassemble.solvers.compiling import announce_compilation
from diffassemble.solvers.diffusion import DiffusionSolver
from diffassemble.solvers.fragment_hybrid import FragmentHybridSolver, Stander
from diffassemble.solvers.gallagher import GallagherSolver
from diffassemble.solvers.huroyan import HuroyanSolver
from diffassemble.solvers.hybrid import HybridSolver
from diffassemble.solvers.mend import MendSolver
from diffassemble.solvers.orientation import Uprighter, turn_to_upright
from diffassemble.solvers.second_look import SecondLook
from diffassemble.solvers.yu import YuSolver

UPRIGHT, SIDE_JUDGE, CRITIC = "upright", "side-judge", "critic"
FRACTURE_MATCHING, POSTURE = "fracture-matching", "posture"
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


def bundled_stander() -> Stander | None:
    """The network that comes with the package and stands objects up; without it, diffusion says how they stand."""
    return Posture.from_pretrained(POSTURE).stand if POSTURE in bundled_models() else None


def bundled_second_look() -> SecondLook | None:
    """A look by the critic that comes with the package; without it, what borders can't decide stays as it is."""
    return SecondLook(Critic.from_pretrained(CRITIC)) if CRITIC in bundled_models() else None


def bundled_judge() -> Judge | None:
    """The judge of sides that comes with the package; without it, border gradients alone tell what fits."""
    if SIDE_JUDGE not in bundled_models():
        return None
    return SideJudge.from_pretrained(SIDE_JUDGE).judge


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
    return DiffusionSolver(network, options.steps, options.samples, upright=bundled_uprighter())


def _hybrid(options: SolverOptions) -> Solver:
    network = Denoiser.from_pretrained(options.model)
    if isinstance(network.encoder, PointEncoder):
        diffusion = DiffusionSolver(network, options.steps, options.samples)
        return FragmentHybridSolver(_mend(options), diffusion, bundled_stander())
    return HybridSolver(
        network,
        options.steps,
        options.samples,
        upright=bundled_uprighter(),
        budget=options.budget,
        judge=bundled_judge(),
        second_look=bundled_second_look(),
    )


def _gallagher(options: SolverOptions) -> Solver:
    return GallagherSolver(options.budget, bundled_uprighter())


def _yu(options: SolverOptions) -> Solver:
    return YuSolver(options.budget, bundled_uprighter())


def _huroyan(options: SolverOptions) -> Solver:
    return HuroyanSolver(options.budget, bundled_uprighter())


def _mend(options: SolverOptions) -> Solver:
    return MendSolver(FractureMatcher.from_pretrained(FRACTURE_MATCHING), options.budget, options.several)


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
