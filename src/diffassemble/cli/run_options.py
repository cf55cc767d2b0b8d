"""The options of a training run: a preset's, or those of the run that goes on, with changes from the command line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro

from diffassemble.presets import PRESETS
from diffassemble.puzzle import InputError
from diffassemble.training.checkpoint import FILE
from diffassemble.training.config import Config, read_config


@dataclass(frozen=True)
class RunOptions:
    """Train a preset. Killed at any moment, it goes on with --resume."""

    config: Annotated[Config, tyro.conf.arg(name="")]
    """What the run itself depends on: a Config of the preset's kind, whose parts name the options."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """folder for checkpoint, log and weights; default: runs/PRESET"""
    resume: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """go on from the checkpoint in --out, with the options of that run except --training.minutes"""


def parse_run(name: str, argv: list[str]) -> tuple[RunOptions, Path]:
    """The options of a run and its folder."""
    preset = PRESETS[name].config
    options = _parse(name, argv, preset)
    folder = options.out or Path("runs") / name
    begun = folder / "config.json"
    if options.resume and begun.exists():
        stored = read_config(begun, type(preset))
        minutes = preset.training.minutes
        options = _parse(name, argv, replace(stored, training=replace(stored.training, minutes=minutes)))
    if not options.resume and (folder / FILE).exists():
        raise InputError(f"{folder}: holds a run already; pass --resume to go on with it, or another --out")
    return options, folder


def _parse(name: str, argv: list[str], config: Config) -> RunOptions:
    return tyro.cli(RunOptions, args=argv, prog=f"diffassemble train {name}", default=RunOptions(config))
