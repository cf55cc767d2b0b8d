"""Networks that predict poses, by name, whatever they are."""

from __future__ import annotations

import json
import os

from diffassemble.network.baselines import OneShot
from diffassemble.network.denoiser import Denoiser, PoseNetwork
from diffassemble.network.pretrained import CONFIG, find_model

KINDS: dict[str, type[PoseNetwork]] = {"Denoiser": Denoiser, "OneShot": OneShot}


def load_network(name: str | os.PathLike[str]) -> PoseNetwork:
    """A bundled model, a folder or a hub id; what it is stands in its configuration."""
    folder = find_model(name)
    try:
        kind = json.loads((folder / CONFIG).read_text())["kind"]
    except (OSError, ValueError, KeyError, TypeError):
        kind = "Denoiser"  # which then says what is wrong with the folder
    return KINDS.get(kind, Denoiser).from_pretrained(folder)
