"""Weights in Hugging Face's manner: a folder with config.json, model.safetensors and a card (README.md)."""

from __future__ import annotations

import dataclasses
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import nn

from diffassemble.core import InputError
from diffassemble.files.atomic import write_file

Network = TypeVar("Network", bound="Pretrained")

BUNDLED = Path(str(files("diffassemble"))) / "weights"
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"


class Pretrained(nn.Module):
    """A network made from one frozen dataclass, which can be saved and loaded by name, folder or hub id."""

    config_class: type
    config: Any

    @classmethod
    def from_pretrained(cls: type[Network], name: str | os.PathLike[str]) -> Network:
        """Load a bundled model ("jigsaw"), a folder, or a Hugging Face hub id ("somebody/something")."""
        folder = find_model(name)
        config, path = read_config(cls, folder), folder / WEIGHTS
        try:
            network = cls(config)
        except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{folder / CONFIG}: describes no network that can be built ({reason})") from error
        try:
            weights = load_file(path)
        except (SafetensorError, OSError) as error:
            raise InputError(f"{path}: not a safetensors file ({error}); pickled weights are refused") from error
        try:
            network.load_state_dict(weights)
        except RuntimeError as error:
            reason = str(error).splitlines()[-1].strip()
            raise InputError(f"{path}: the weights do not fit {CONFIG} ({reason})") from error
        return network.eval()

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write config.json and model.safetensors, each whole or not at all; a card that is there stays."""
        config = {"kind": type(self).__name__, **dataclasses.asdict(self.config)}
        weights = {name: value.detach().contiguous() for name, value in self.state_dict().items()}
        write_file(Path(folder) / WEIGHTS, save(weights))
        write_file(Path(folder) / CONFIG, (json.dumps(config, indent=2) + "\n").encode())

    @property
    def parameters_in_all(self) -> int:
        """How many numbers were learnt."""
        return sum(parameter.numel() for parameter in self.parameters())


def read_config(cls: type[Pretrained], folder: Path) -> Any:
    """The configuration in a model folder, checked against the network's kind, known settings and their types."""
    path = folder / CONFIG
    try:
        values = json.loads(path.read_text())
        kind = values.pop("kind")
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a model configuration ({error})") from error
    if kind != cls.__name__:
        raise InputError(f"{path}: describes a {kind}, but a {cls.__name__} is needed")
    known = {field.name for field in dataclasses.fields(cls.config_class)}
    if unknown := sorted(set(values) - known):
        raise InputError(f"{path}: unknown settings {', '.join(unknown)}; was it made by a newer version?")
    for name, hint in get_type_hints(cls.config_class).items():
        if name in values and not _allows(hint, values[name]):
            choices = ", ".join(map(str, get_args(hint)))
            wanted = f"one of {choices}" if choices else hint.__name__
            raise InputError(f"{path}: {name} is {values[name]!r}, but must be {wanted}")
    listed = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    try:
        return cls.config_class(**listed)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: {error}") from error


def _allows(hint: Any, value: Any) -> bool:
    """Whether a value out of JSON is of the kind that a setting wants; only plain types and choices are checked."""
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    return type(value) in {bool: (bool,), int: (int,), float: (int, float)}.get(hint, (type(value),))


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
