"""Everyday solids out of nothing but chance."""
