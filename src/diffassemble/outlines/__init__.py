"""Flat pieces of any outline: jigsaw pieces with tabs, fresco fragments, torn paper, strips."""
