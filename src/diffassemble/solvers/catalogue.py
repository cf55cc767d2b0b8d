"""Solvers by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from diffassemble.model import Denoiser, bundled_models
from diffassemble.model.upright import Upright
from diffassemble.puzzle import InputError, Solver
from diffassemble.solvers.diffusion import DiffusionSolver
from diffassemble.solvers.gallagher import GallagherSolver
from diffassemble.solvers.huroyan import HuroyanSolver
from diffassemble.solvers.hybrid import HybridSolver
from diffassemble.solvers.orientation import Uprighter, turn_to_upright
from diffassemble.solvers.yu import YuSolver

UPRIGHT = "upright"
# These only compare borders, which can't tell which way is up; where they know it, the classifier told them.
BORDER_SOLVERS = frozenset({"gallagher", "yu", "huroyan"})


def bundled_uprighter() -> Uprighter | None:
    """The classifier that comes with the package; without it, wholes stay as they were assembled."""
    if UPRIGHT not in bundled_models():
        return None
    return partial(turn_to_upright, Upright.from_pretrained(UPRIGHT))


@dataclass(frozen=True)
class SolverOptions:
    """What solvers are asked for; each takes what concerns it. `budget`: seconds a puzzle, of those that search."""

    model: str = "jigsaw"
    samples: int = 8
    steps: int = 20
    budget: float = math.inf


def _diffusion(options: SolverOptions) -> Solver:
    network = Denoiser.from_pretrained(options.model)
    return DiffusionSolver(network, options.steps, options.samples, upright=bundled_uprighter())


def _hybrid(options: SolverOptions) -> Solver:
    network = Denoiser.from_pretrained(options.model)
    return HybridSolver(network, options.steps, options.samples, upright=bundled_uprighter(), budget=options.budget)


def _gallagher(options: SolverOptions) -> Solver:
    return GallagherSolver(options.budget, bundled_uprighter())


def _yu(options: SolverOptions) -> Solver:
    return YuSolver(options.budget, bundled_uprighter())


def _huroyan(options: SolverOptions) -> Solver:
    return HuroyanSolver(options.budget, bundled_uprighter())


SOLVERS: dict[str, Callable[[SolverOptions], Solver]] = {
    "diffusion": _diffusion,
    "hybrid": _hybrid,
    "gallagher": _gallagher,
    "yu": _yu,
    "huroyan": _huroyan,
}


def make_solver(
    name: str, *, model: str = "jigsaw", samples: int = 8, steps: int = 20, budget: float = math.inf
) -> Solver:
    """A solver with its weights loaded; `model` is a bundled name, a folder or a hub id.

    After `budget` seconds solvers that search answer with the best so far.
    """
    if name not in SOLVERS:
        raise InputError(f"no solver '{name}'; use one of: {', '.join(SOLVERS)}")
    if samples < 1 or steps < 1:
        raise InputError(f"samples and steps must be 1 or more, not {samples} and {steps}")
    if not budget > 0:
        raise InputError(f"budget {budget:g} leaves no time to search; pass more than 0 seconds")
    return SOLVERS[name](SolverOptions(model, samples, steps, budget))
