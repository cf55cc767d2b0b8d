"""Decorators for loops that numba compiles."""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop that Python calls, once a machine and type of arguments: pass contiguous arrays, one precision."""
    return njit(cache=True, nogil=True)(unwrap(function))


def inner(function: Callable[..., Any]) -> Any:
    """Compile a loop that only kernels call; they keep its code with theirs."""
    return njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(unwrap(function))
