"""Bad input is a kind of bad value, told apart from a fault of the program."""

from __future__ import annotations

from diffassemble.core import InputError


def test_input_errors_are_value_errors() -> None:
    assert issubclass(InputError, ValueError)
    assert str(InputError("what, where, what to do")) == "what, where, what to do"
