"""The trained networks answer what the stations ask."""

from __future__ import annotations

from diffassemble.fragments.clusters import Judges
from diffassemble.fragments.model import FractureMatcher


def test_the_networks_are_judges(judges: FractureMatcher) -> None:
    assert isinstance(judges, Judges)
