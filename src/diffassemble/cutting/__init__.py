"""Whole things become pieces with true poses."""
