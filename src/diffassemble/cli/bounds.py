"""The bounds of every option that is a number: one table for all verbs; those of `train` stand with its settings."""

from __future__ import annotations

from annotated_types import BaseMetadata, Ge, Gt, Interval, Lt

from diffassemble.core.limits import LIMITS
from diffassemble.io.pictures import MOST_PIXELS

_SHARE = (Ge(0), Lt(1))
_PIXELS = Interval(ge=0, le=int(MOST_PIXELS**0.5))

# By the option's name, after the verb's if that has bounds of its own.
BOUNDS: dict[str, tuple[BaseMetadata | Interval, ...]] = {
    "samples": (Interval(ge=1, le=LIMITS.samples),),
    "steps": (Interval(ge=1, le=LIMITS.steps),),
    "budget": (Gt(0),),
    "seed": (Ge(0), Lt(2**63)),
    "missing": _SHARE,
    "chips": _SHARE,
    "erode": (_PIXELS,),
    "size": (Interval(ge=1, le=int(MOST_PIXELS**0.5)),),
    "pieces": (Interval(ge=1, le=LIMITS.outlines),),
    "fracture pieces": (Interval(ge=2, le=200),),
    "limit": (Interval(ge=1, le=LIMITS.cases),),
    "puzzles": (Interval(ge=1, le=LIMITS.cases),),
    "seeds": (Interval(ge=1, le=LIMITS.cases),),
    "noise": _SHARE,
    "wear": _SHARE,
    "points": (Interval(ge=0, le=LIMITS.points),),
    "points_each": (Interval(ge=0, le=LIMITS.points),),
    "port": (Interval(ge=0, le=65535),),
    "turn": (),
}


def bounds_of(verb: str, option: str) -> tuple[BaseMetadata | Interval, ...]:
    """What numbers an option of a verb takes; an option that is not in the table is a mistake of this program."""
    return BOUNDS[key] if (key := f"{verb} {option}") in BOUNDS else BOUNDS[option]
