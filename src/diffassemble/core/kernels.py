"""Decorators for loops that numba compiles."""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop that Python calls, once a machine; wrappers of type checkers are removed.

    Pass arrays contiguous and numbers always in one precision: numba compiles a function anew for every other type.
    Array operations, `min` and `max` take it many times as long to compile as loops.
    """
    return njit(cache=True, nogil=True)(unwrap(function))


def inner(function: Callable[..., Any]) -> Any:
    """Compile a loop that only kernels call; they keep its code with theirs."""
    return njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(unwrap(function))
