"""Options that several verbs share, and how arguments are parsed or refused in one line."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr
from dataclasses import is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import tyro
from annotated_types import BaseMetadata, Ge, GroupedMetadata, Gt, Interval, Lt
from tyro.conf import FlagCreatePairsOff, arg

_Result = TypeVar("_Result")
_NOTHING = object()


def option(metavar: str, words: str | None = None) -> Any:
    """An option with or without a help text, which names the default."""
    return arg(metavar=metavar, help=words, help_behavior_hint="")


Flag = Annotated[bool, FlagCreatePairsOff]
Folder = Annotated[Path, arg(metavar="DIR", help="The folder to write.")]
Overwrite = Annotated[bool, arg(help="Replace what this program wrote there earlier; other files are never replaced.")]
Seed = Annotated[int, arg(help="The same seed gives the same puzzles and the same answers.")]
Missing = Annotated[float, arg(metavar="SHARE", help="Share of the pieces to take away, such as 0.3.")]
Samples = Annotated[int, arg(help="Answers that a diffusion solver draws; the best is kept, agreement is confidence.")]
Steps = Annotated[int, arg(help="Denoising steps of a diffusion solver.")]
_BUDGET = "Seconds a puzzle, after which solvers that search give their best answer so far. Default: no limit."
Budget = Annotated[float, option("SECONDS", _BUDGET)]
_MODEL = "The model of learned solvers: a bundled name, a folder or a hub id. Default: the one that suits the pieces."
Model = Annotated[str | None, option("NAME", _MODEL)]
_GRID = "Rows and columns, such as 6x6, 4x7, or 6 for 6x6. Default: those of a puzzle folder; else they are estimated."
Grid = Annotated[str | None, option("RxC", _GRID)]
_COLOURS = "A folder of photos that show the colours of silhouettes, with the same file names."
Colours = Annotated[Path | None, option("DIR", _COLOURS)]
_SHEET = """The sheet of paper that photographed pieces lie on, its four corners in view: a3, a4, a5, letter, or
millimetres such as 210x297. Its corners undo the perspective and bring several photos to one scale. Default: a sheet of
the shape of a4 or letter is looked for; "none" leaves photos as they are."""
Sheet = Annotated[str, option("FORMAT", _SHEET)]


class NotUnderstood(Exception):
    """Arguments that cannot be parsed, in one line; defined without torch, which `InputError` brings with it."""


def understand(wanted: Callable[..., _Result], arguments: list[str], prog: str, default: Any = _NOTHING) -> _Result:
    """An instance of a dataclass, or what a function returns when it is called with the arguments.

    Help goes to the standard output. What cannot be parsed is refused in one line, with what was perhaps meant.
    """
    given = {} if default is _NOTHING else {"default": default}
    printed = io.StringIO()
    try:
        with redirect_stderr(printed):
            parsed = tyro.cli(wanted, args=arguments, prog=prog, **given)
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise NotUnderstood(f"{_line(printed.getvalue())}; see {prog} --help") from None
    if is_dataclass(parsed):
        check_bounds(prog, vars(parsed), get_type_hints(type(parsed), include_extras=True))
    return parsed


def understood_call(function: Callable[..., None], arguments: list[str], prog: str) -> Callable[[], None]:
    """A call of a function with these arguments, which were parsed and checked."""

    @wraps(function)
    def later(**named: Any) -> Callable[[], None]:
        check_bounds(prog, named, {})
        return lambda: function(**named)

    return understand(later, arguments, prog)


def check_bounds(prog: str, values: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Refuse numbers out of their bounds: those in the annotations, or else those of `bounds_of`."""
    from diffassemble.core import InputError
    from diffassemble.core.settings import broken_bounds

    for name, value in values.items():
        numbers = [one for one in (value if isinstance(value, tuple) else (value,)) if type(one) in (int, float)]
        hint = hints.get(name)
        marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        own = tuple(mark for mark in marks if isinstance(mark, BaseMetadata | GroupedMetadata))
        if numbers and (wanted := broken_bounds(numbers, own or bounds_of(prog.split()[1], name))):
            shown = " ".join(f"{number:g}" if isinstance(number, float) else str(number)[:40] for number in numbers)
            raise InputError(f"--{name.replace('_', '-')} {shown}: must be {wanted}; see {prog} --help")


def bounds_of(verb: str, name: str) -> tuple[BaseMetadata | Interval, ...]:
    """The bounds of an option that is a number, by its name; those of `train` are in its settings."""
    from diffassemble.core.limits import LIMITS
    from diffassemble.io.pictures import MOST_PIXELS

    share, side, points = (Ge(0), Lt(1)), int(MOST_PIXELS**0.5), (Interval(ge=0, le=LIMITS.points),)
    cases, pieces = (Interval(ge=1, le=LIMITS.cases),), Interval(ge=1, le=LIMITS.outlines)
    return {
        **dict.fromkeys(("missing", "chips", "noise", "wear"), share),
        **dict.fromkeys(("limit", "puzzles", "seeds"), cases),
        **dict.fromkeys(("points", "points_each"), points),
        "samples": (Interval(ge=1, le=LIMITS.samples),),
        "steps": (Interval(ge=1, le=LIMITS.steps),),
        "budget": (Gt(0),),
        "seed": (Ge(0), Lt(2**63)),
        "erode": (Interval(ge=0, le=side),),
        "size": (Interval(ge=1, le=side),),
        "pieces": (Interval(ge=2, le=200) if verb == "fracture" else pieces,),
        "port": (Interval(ge=0, le=65535),),
        "turn": (),
    }[name]


def _line(box: str) -> str:
    """The first part of tyro's framed message, and the first option that is proposed in another."""
    box = re.sub(r"\x1b\[[0-9;]*m", "", box)
    # The first line of the frame has its title, the last one nothing.
    inner = [" ".join(line.strip("│| ").split()) for line in box.strip().splitlines()[1:-1]]
    parts = [" ".join(part.split()) for part in re.split(r"─{5,}|-{10,}", "\n".join(inner))]
    first = next((part for part in parts if part), "the options are not understood").split(" Got errors:")[0]
    meant = re.search(r"Perhaps you meant: (--\S+)", " ".join(parts))
    return f"{first[0].lower()}{first[1:].removesuffix('.')}" + (f"; perhaps you meant {meant[1]}" if meant else "")
