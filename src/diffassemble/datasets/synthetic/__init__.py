"""Everyday solids out of nothing but chance."""

from diffassemble.datasets.synthetic.catalogue import SOLIDS, make_solid, solid_name

__all__ = ["SOLIDS", "make_solid", "solid_name"]
