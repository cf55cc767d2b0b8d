"""Whoever waits for a compilation is told why, once."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from numba.core import event

from diffassemble.kinds import COMPILING, Announcer

SOURCE = "from numba import njit\n\n\n@njit(cache=True)\ndef successor(x):\n    return x + 1\n"


def loaded(path: Path, name: str) -> Any:
    """The module of a file anew, as another process would load it."""
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_said_once_and_only_when_nothing_is_found_on_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tried.py"
    path.write_text(SOURCE)
    with event.install_listener(COMPILING, Announcer()):
        module = loaded(path, "diffassemble.tried")
        assert (module.successor(1), module.successor(1.5)) == (2, 2.5)
    # Solvers made by other tests have an announcer of their own, which may not have spoken yet.
    line = "compiling the search, once; about 10 s\n"
    assert capsys.readouterr().err in (line, 2 * line)
    with event.install_listener(COMPILING, Announcer()):
        assert loaded(path, "diffassemble.tried").successor(1) == 2
    assert capsys.readouterr() == ("", "")
    path.with_name("foreign.py").write_text(SOURCE)  # what others compile is not our business
    with event.install_listener(COMPILING, Announcer()):
        assert loaded(path.with_name("foreign.py"), "foreign").successor(1) == 2
    assert capsys.readouterr() == ("", "")
