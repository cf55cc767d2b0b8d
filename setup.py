"""What pyproject.toml can't say: on a package index the README's pictures and links need whole addresses."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent


def readme() -> str:
    """The README with its relative links below `links` of pyproject.toml, if that is set."""
    base = tomllib.loads((HERE / "pyproject.toml").read_text())["tool"]["diffassemble"]["links"]
    text = (HERE / "README.md").read_text()
    return re.sub(r"\]\((?![a-z]+:|#)", f"]({base.rstrip('/')}/", text) if base else text


setup(long_description=readme(), long_description_content_type="text/markdown")
