"""Assemblies: growth from matches, confidence, answers, layout and locks, for all kinds of pieces."""
