"""Assemblies as pictures, animations and pages."""
