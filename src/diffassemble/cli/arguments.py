"""What stands behind a verb, understood or refused in one line."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr
from dataclasses import is_dataclass
from functools import wraps
from types import MappingProxyType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import tyro
from annotated_types import BaseMetadata, GroupedMetadata

_Result = TypeVar("_Result")
_NOTHING = object()


class NotUnderstood(Exception):
    """Arguments that make no sense, in one line; known without torch, which bad input needs."""


def understand(wanted: Callable[..., _Result], arguments: list[str], prog: str, default: Any = _NOTHING) -> _Result:
    """What the arguments stand for: an instance of a dataclass, or what a function gives when it is called with them.

    Help goes to the standard output, as always. What can't be understood is refused in one line, with what was
    perhaps meant.
    """
    told = {} if default is _NOTHING else {"default": default}
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            understood = tyro.cli(wanted, args=arguments, prog=prog, **told)
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise NotUnderstood(f"{_line(said.getvalue())}; see {prog} --help") from None
    if is_dataclass(understood):
        hints = get_type_hints(type(understood), include_extras=True)
        marks = {
            name: tuple(mark for mark in get_args(hint)[1:] if isinstance(mark, BaseMetadata | GroupedMetadata))
            for name, hint in hints.items()
            if get_origin(hint) is Annotated
        }
        check_bounds(prog, vars(understood), marks)
    return understood


def understood_call(function: Callable[..., None], arguments: list[str], prog: str) -> Callable[[], None]:
    """A call of a function with these arguments, which were understood."""

    @wraps(function)
    def later(**named: Any) -> Callable[[], None]:
        check_bounds(prog, named)
        return lambda: function(**named)

    return understand(later, arguments, prog)


def check_bounds(
    prog: str, values: Mapping[str, Any], marks: Mapping[str, tuple[Any, ...]] = MappingProxyType({})
) -> None:
    """Refuse numbers out of their bounds: the `marks` of annotated-types, or those that `cli.bounds` has for a verb."""
    from diffassemble.cli.bounds import bounds_of
    from diffassemble.core import InputError
    from diffassemble.core.settings import broken_bounds

    for name, value in values.items():
        numbers = [one for one in (value if isinstance(value, tuple) else (value,)) if type(one) in (int, float)]
        if numbers and (wanted := broken_bounds(numbers, marks.get(name) or bounds_of(prog.split()[1], name))):
            told = " ".join(f"{number:g}" if isinstance(number, float) else str(number)[:40] for number in numbers)
            raise InputError(f"--{name.replace('_', '-')} {told}: must be {wanted}; see {prog} --help")


def _line(box: str) -> str:
    """The first part of a framed message, and the first option that is proposed in another."""
    box = re.sub(r"\x1b\[[0-9;]*m", "", box)
    # The first line of the frame has its title, the last one nothing.
    inner = [" ".join(line.strip("│| ").split()) for line in box.strip().splitlines()[1:-1]]
    parts = [" ".join(part.split()) for part in re.split(r"─{5,}|-{10,}", "\n".join(inner))]
    told = next((part for part in parts if part), "the options are not understood").split(" Got errors:")[0]
    meant = re.search(r"Perhaps you meant: (--\S+)", " ".join(parts))
    told = told.removesuffix(".")
    return f"{told[0].lower()}{told[1:]}" + (f"; perhaps you meant {meant[1]}" if meant else "")
