"""What stands behind a verb, understood or refused in one line."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from contextlib import redirect_stderr
from functools import wraps
from typing import Any, TypeVar

import tyro

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
            return tyro.cli(wanted, args=arguments, prog=prog, **told)
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise NotUnderstood(f"{_line(said.getvalue())}; see {prog} --help") from None


def understood_call(function: Callable[..., None], arguments: list[str], prog: str) -> Callable[[], None]:
    """A call of a function with these arguments, which were understood."""

    @wraps(function)
    def later(*values: Any, **named: Any) -> Callable[[], None]:
        return lambda: function(*values, **named)

    return understand(later, arguments, prog)


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
