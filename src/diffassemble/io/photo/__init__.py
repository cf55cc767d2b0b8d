"""Photographs of loose pieces: where pieces lie, and what their outlines are."""
