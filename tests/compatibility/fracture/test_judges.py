"""The trained networks answer what the stations ask."""

from __future__ import annotations

from diffassemble.compatibility.fracture.judges import Judges
from diffassemble.model.fracture import FractureMatcher


def test_the_networks_are_judges(judges: FractureMatcher) -> None:
    assert isinstance(judges, Judges)
