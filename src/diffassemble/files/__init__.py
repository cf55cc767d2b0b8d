"""Puzzles, pictures, meshes and assemblies in and out of files; nothing is left half written."""
