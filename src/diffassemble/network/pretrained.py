"""Weights in Hugging Face's manner: a folder with config.json, model.safetensors and a card (README.md)."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeVar

from safetensors.torch import load, save
from torch import nn

from diffassemble.core import InputError
from diffassemble.core.limits import LIMITS, check_memory
from diffassemble.core.settings import read_settings
from diffassemble.io.atomic import write_file
from diffassemble.io.reading import file_size, read_bytes, read_json, reason

Network = TypeVar("Network", bound="Pretrained")

BUNDLED = Path(str(files("diffassemble"))) / "weights"
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
RENAMED = {
    **{"judge": "edge_model", "shown": "observed"},
    **{"SideJudge": "EdgeModel", "Posture": "OrientationModel", "FractureMatcher": "FractureModels"},
}
"""settings and kinds that have another name in older model folders"""
_CARD = """---
library_name: diffassemble
tags: [jigsaw, reassembly]
---

# {kind}

A network of DiffAssemble {version} with {count:,} parameters. Describe here what it was trained on, its accuracy and
its licence.

## Use

The command line takes this folder, or its hub id, as `--model`; Python as `model=` of `diffassemble.solve`.

## Settings

| setting | value |
|---|---|
{settings}
"""


class Pretrained(nn.Module):
    """A network made from one frozen dataclass, which can be saved and loaded by name, folder or hub id."""

    config_class: type
    halved: ClassVar[bool] = False
    """whether numbers are stored with half of their digits; they are loaded as usual"""
    config: Any

    @classmethod
    def from_pretrained(cls: type[Network], name: str | os.PathLike[str]) -> Network:
        """Load a bundled model ("jigsaw"), a folder, or a Hugging Face hub id ("owner/name")."""
        folder = find_model(name)
        path = folder / WEIGHTS
        size = file_size(path, "safetensors file", LIMITS.model_bytes)
        check_memory(3 * size, f"{path}: these weights", "use a smaller model")
        network = cls(read_config(cls, folder))
        content = read_bytes(path, "safetensors file", LIMITS.model_bytes)
        try:
            weights = load(content)
        except Exception as error:  # other files raise many kinds
            message = f"{path}: not a safetensors file ({reason(error)}); pickled weights are refused"
            raise InputError(message) from error
        try:
            network.load_state_dict(weights)
        except RuntimeError as error:
            last = str(error).splitlines()[-1].strip()
            raise InputError(f"{path}: the weights do not fit {CONFIG} ({last})") from error
        for key, values in weights.items():
            if values.is_floating_point() and not bool(values.isfinite().all()):
                raise InputError(f"{path}: {key} holds NaN or infinite numbers; train it anew, or get it again")
        return network.eval()

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write config.json, model.safetensors and a card, each whole or not at all; a card that is there stays."""
        config = {"kind": type(self).__name__, **dataclasses.asdict(self.config)}
        weights = {name: value.detach().contiguous() for name, value in self.state_dict().items()}
        if self.halved:
            weights = {name: value.half() if value.is_floating_point() else value for name, value in weights.items()}
        write_file(Path(folder) / WEIGHTS, save(weights))
        write_file(Path(folder) / CONFIG, (json.dumps(config, indent=2) + "\n").encode())
        if not (Path(folder) / CARD).exists():
            count = sum(value.numel() for value in weights.values())
            settings = "\n".join(f"| {name} | `{value}` |" for name, value in config.items())
            card = _CARD.format(kind=config["kind"], count=count, settings=settings, version=version("diffassemble"))
            write_file(Path(folder) / CARD, card.encode())

    def push_to_hub(self, name: str, *, private: bool = False) -> str:
        """Upload the model to the Hugging Face hub as "owner/name", with the login of `hf auth login`; its address."""
        from huggingface_hub import HfApi

        if name.count("/") != 1:
            raise InputError(f"a hub id is owner/name, not '{name}'")
        with TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            hub = HfApi()
            try:
                address = hub.create_repo(name, private=private, exist_ok=True)
                hub.upload_folder(repo_id=name, folder_path=folder, commit_message="Upload the model")
            except Exception as error:  # the hub client raises many kinds, for no network as for no rights
                raise InputError(f"'{name}' could not be uploaded to the hub ({type(error).__name__})") from error
        return str(address)


def stored_as(module: nn.Module, **names: str) -> None:
    """Keep attributes of a module under other names in its state dict, as in weights that exist (attribute=stored)."""

    def rename(state: dict[str, Any], prefix: str, pairs: Iterable[tuple[str, str]]) -> None:
        for old, new in pairs:
            for key in [key for key in state if f"{key}.".startswith(f"{prefix}{old}.")]:
                state[prefix + new + key[len(prefix + old) :]] = state.pop(key)

    module.register_state_dict_post_hook(lambda own, state, prefix, metadata: rename(state, prefix, names.items()))
    module.register_load_state_dict_pre_hook(
        lambda own, state, prefix, *others: rename(state, prefix, ((new, old) for old, new in names.items()))
    )


def read_config(cls: type[Pretrained], folder: Path) -> Any:
    """The configuration in a model folder, checked against the network's kind, known settings and their bounds."""
    path = folder / CONFIG
    values = read_json(path, "model configuration")
    stored = values.pop("kind", None) if isinstance(values, dict) else None
    if not isinstance(stored, str):
        raise InputError(f"{path}: not a model configuration (it has no 'kind')")
    kind = RENAMED.get(stored, stored)
    if kind != cls.__name__:
        raise InputError(f"{path}: describes a {kind}, but a {cls.__name__} is needed")
    try:
        return read_settings(cls.config_class, {RENAMED.get(name, name): value for name, value in values.items()})
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def find_model(name: str | os.PathLike[str]) -> Path:
    """The folder of a model: given as such, bundled, or from the hub (the only case that uses the network)."""
    text = os.fspath(name)
    if Path(text).is_dir():
        return Path(text)
    if text in bundled_models():
        return BUNDLED / text
    if text.count("/") != 1 or text.startswith((".", "/")):
        bundled = ", ".join(bundled_models()) or "none here"
        raise InputError(f"no model '{text}': neither a folder nor a bundled model ({bundled})")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(text, allow_patterns=[CONFIG, WEIGHTS, CARD]))
    except Exception as error:  # the hub client raises many kinds, for no network as for no such model
        raise InputError(f"no folder '{text}', and the hub does not answer for it ({type(error).__name__})") from error


def bundled_models() -> list[str]:
    """Names of the models that come with the package."""
    return sorted(path.parent.name for path in BUNDLED.glob(f"*/{WEIGHTS}"))
