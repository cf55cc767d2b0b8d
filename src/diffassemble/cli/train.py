"""`diffassemble train`: a preset, with any value of it changed on the command line."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from diffassemble.presets import PRESETS
from diffassemble.puzzle import InputError
from diffassemble.training import Config, train
from diffassemble.training.jigsaw import JigsawTask


@dataclasses.dataclass(frozen=True)
class Run(Config):
    """Train a preset. Killed at any moment, it goes on with --resume."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """folder for checkpoint, log and weights; default: runs/PRESET"""
    resume: bool = False
    """go on from the checkpoint in --out"""


def run(argv: list[str]) -> None:
    """Parse the preset and its changes, then train."""
    if not argv or argv[0] not in PRESETS:
        if argv and argv[0] in ("-h", "--help"):
            print(f"usage: diffassemble train PRESET [--resume] [--a.b VALUE …]\n\npresets: {', '.join(PRESETS)}")
            return
        raise InputError(f"name a preset to train: {', '.join(PRESETS)}")
    name, preset = argv[0], PRESETS[argv[0]]
    default = Run(preset.model, preset.data, preset.training)
    options = tyro.cli(Run, args=argv[1:], prog=f"diffassemble train {name}", default=default)
    folder = options.out or Path("runs") / name
    if not options.resume and (folder / "checkpoint.pt").exists():
        raise InputError(f"{folder}: holds a run already; pass --resume to go on with it, or another --out")
    folder.mkdir(parents=True, exist_ok=True)
    config = Config(options.model, options.data, options.training)
    train(config, JigsawTask(config), folder, options.resume)
    print(f"weights: {folder / 'best'} (best on pictures held apart) and {folder / 'last'}; log: {folder / 'log.csv'}")
