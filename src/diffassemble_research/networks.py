"""Kinds of networks that are stored in model folders, by the name of their class."""

from __future__ import annotations

from diffassemble.network.denoiser import PoseNetwork
from diffassemble_research.baselines import OneShot

NETWORKS: dict[str, type[PoseNetwork]] = {"OneShot": OneShot}
