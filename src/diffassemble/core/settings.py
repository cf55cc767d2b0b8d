"""Settings: frozen dataclasses with bounds of annotated-types (of a tuple: of each number), checked and read."""

from __future__ import annotations

import dataclasses
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, GroupedMetadata, Gt, Interval, Le, Lt, MultipleOf

from diffassemble.core.limits import LIMITS
from diffassemble.core.puzzle import InputError

Count = Annotated[int, Interval(ge=1, le=LIMITS.count)]
Natural = Annotated[int, Interval(ge=0, le=LIMITS.count)]
Batch = Annotated[int, Interval(ge=1, le=LIMITS.batch)]
Cases = Annotated[int, Interval(ge=0, le=LIMITS.cases)]
Width = Annotated[int, Interval(ge=1, le=LIMITS.network_width)]
Depth = Annotated[int, Interval(ge=1, le=LIMITS.network_layers)]
Few = Annotated[int, Interval(ge=0, le=LIMITS.network_layers)]
Times = Annotated[int, Interval(ge=1, le=LIMITS.steps)]
Even = Annotated[int, Interval(ge=2, le=LIMITS.network_width), MultipleOf(2)]
Positive = Annotated[float, Gt(0)]
Weight = Annotated[float, Ge(0)]
Share = Annotated[float, Interval(ge=0, le=1)]
Fraction = Annotated[float, Interval(ge=0, lt=1)]

_BOUNDS: dict[type, tuple[Callable[[Any, Any], bool], str]] = {
    Ge: (operator.ge, "{} or more"),
    Gt: (operator.gt, "over {}"),
    Le: (operator.le, "at most {}"),
    Lt: (operator.lt, "under {}"),
    MultipleOf: (lambda value, number: value % number == 0, "a multiple of {}"),
}
"""when a value keeps to a bound, and the words for it"""
Kind = TypeVar("Kind")


class Settings(ABC):
    """Settings that know which of their values do not go together."""

    @abstractmethod
    def conflicts(self) -> Iterable[tuple[str, str]]:
        """Names of settings at fault, and what they must be, in the words that follow "must be"."""


def check_settings(settings: Any, section: str = "") -> None:
    """Refuse the first value that is out of bounds or conflicts; with a section it is named `--section.value`."""
    for name, wanted in _faults(settings):
        option = f"--{section}.{name.replace('_', '-')}" if section else name
        value = getattr(settings, name)
        words = " ".join(map(str, value if isinstance(value, tuple) else (value,)))
        raise InputError(f"{f'{option} {words}'.rstrip()}: must be {wanted}")


def read_settings(kind: type[Kind], values: Mapping[str, Any]) -> Kind:
    """Settings out of JSON; those that are not there are the defaults."""
    hints = get_type_hints(kind)
    if unknown := sorted(set(values) - {field.name for field in dataclasses.fields(kind)}):  # type: ignore[arg-type]
        raise InputError(f"unknown settings {', '.join(unknown)}; was it made by a newer version?")
    for name, value in values.items():
        if not _allows(hints[name], value):
            choices = ", ".join(map(str, _choices(hints[name])))
            wanted = f"one of {choices}" if choices else hints[name].__name__
            raise InputError(f"{name} is {value!r}, but must be {wanted}")
    # JSON knows neither tuples nor paths.
    known = {name: get_args(hints[name])[0] for name in values if get_origin(hints[name]) is tuple}
    tuples = {name: tuple(Path(one) if part is Path else one for one in values[name]) for name, part in known.items()}
    settings = kind(**{**values, **tuples})
    check_settings(settings)
    return settings


def _faults(settings: Any) -> Iterator[tuple[str, str]]:
    for name, hint in get_type_hints(type(settings), include_extras=True).items():
        value, each = getattr(settings, name), ""
        if get_origin(hint) is tuple:
            hint, each = get_args(hint)[0], "each "
        if wanted := broken_bounds(value if each else (value,), getattr(hint, "__metadata__", ())):
            yield name, each + wanted
    if isinstance(settings, Settings):
        yield from settings.conflicts()


def broken_bounds(values: Iterable[Any], found: Iterable[Any]) -> str:
    """What values must be by these marks of annotated-types, if some are not; else nothing."""
    bounds = chain.from_iterable(one if isinstance(one, GroupedMetadata) else [one] for one in found)
    rules = [(*_BOUNDS[type(bound)], *dataclasses.astuple(bound)) for bound in bounds]
    if all(holds(one, limit) for one in values for holds, _, limit in rules):
        return ""
    return " and ".join(words.format(limit) for _, words, limit in rules)


def _choices(hint: Any) -> tuple[Any, ...]:
    """What a choice, or one of several, may be."""
    return tuple(chain.from_iterable(map(_choices, get_args(hint)))) if get_origin(hint) is Union else get_args(hint)


def _allows(hint: Any, value: Any) -> bool:
    """Whether a value out of JSON is of the kind that a setting wants; only plain types and choices are checked."""
    if get_origin(hint) is Union:
        return any(_allows(one, value) for one in get_args(hint))
    if get_origin(hint) is Literal:
        return isinstance(value, str | int) and value in get_args(hint)
    if get_origin(hint) is tuple:
        return isinstance(value, list | tuple)
    return type(value) in {bool: (bool,), int: (int,), float: (int, float), str: (str,)}.get(hint, (type(value),))
