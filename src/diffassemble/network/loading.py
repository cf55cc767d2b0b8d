"""Networks that predict poses, by name, whatever they are."""

from __future__ import annotations

import os
from collections.abc import Mapping

from diffassemble.extensions import Registry
from diffassemble.io.reading import read_json
from diffassemble.network.denoiser import Denoiser, PoseNetwork
from diffassemble.network.pretrained import CONFIG, find_model

KINDS: Mapping[str, type[PoseNetwork]] = Registry("networks", {"Denoiser": Denoiser})


def load_network(name: str | os.PathLike[str]) -> PoseNetwork:
    """A bundled model, a folder or a hub id; what it is stands in its configuration."""
    folder = find_model(name)
    values = read_json(folder / CONFIG, "model configuration")
    kind = values.get("kind") if isinstance(values, dict) else None
    # A Denoiser then says what is wrong with the folder.
    return KINDS.get(kind if isinstance(kind, str) else "", Denoiser).from_pretrained(folder)
