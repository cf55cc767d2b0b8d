"""Broken objects: meshes and clouds, made, read, matched along their breaks, and put together."""
