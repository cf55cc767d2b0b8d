"""Verbs that this package adds or extends, with the modules that run them."""

from __future__ import annotations

VERBS = {"evaluate": "diffassemble_research.evaluate"}
