"""Solvers by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from diffassemble.model import Denoiser, bundled_models
from diffassemble.model.upright import Upright
from diffassemble.puzzle import InputError, Solver
from diffassemble.solvers.diffusion import DiffusionSolver
from diffassemble.solvers.orientation import Uprighter, turn_to_upright

UPRIGHT = "upright"


def bundled_uprighter() -> Uprighter | None:
    """The classifier that comes with the package; without it, wholes stay as they were assembled."""
    if UPRIGHT not in bundled_models():
        return None
    return partial(turn_to_upright, Upright.from_pretrained(UPRIGHT))


def _diffusion(model: str, samples: int, steps: int) -> Solver:
    return DiffusionSolver(Denoiser.from_pretrained(model), steps, samples, upright=bundled_uprighter())


SOLVERS: dict[str, Callable[[str, int, int], Solver]] = {"diffusion": _diffusion}


def make_solver(name: str, *, model: str = "jigsaw", samples: int = 8, steps: int = 20) -> Solver:
    """A solver with its weights loaded; `model` is a bundled name, a folder or a hub id."""
    if name not in SOLVERS:
        raise InputError(f"no solver '{name}'; use one of: {', '.join(SOLVERS)}")
    if samples < 1 or steps < 1:
        raise InputError(f"samples and steps must be 1 or more, not {samples} and {steps}")
    return SOLVERS[name](model, samples, steps)
