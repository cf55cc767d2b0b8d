"""Networks that predict poses, by name, whatever they are."""

from __future__ import annotations

import os

from diffassemble.io.reading import read_json
from diffassemble.network.baselines import OneShot
from diffassemble.network.denoiser import Denoiser, PoseNetwork
from diffassemble.network.pretrained import CONFIG, find_model

KINDS: dict[str, type[PoseNetwork]] = {"Denoiser": Denoiser, "OneShot": OneShot}


def load_network(name: str | os.PathLike[str]) -> PoseNetwork:
    """A bundled model, a folder or a hub id; what it is stands in its configuration."""
    folder = find_model(name)
    values = read_json(folder / CONFIG, "model configuration")
    kind = values.get("kind") if isinstance(values, dict) else None
    # A Denoiser then says what is wrong with the folder.
    return KINDS.get(kind if isinstance(kind, str) else "", Denoiser).from_pretrained(folder)
