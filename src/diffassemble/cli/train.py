"""`diffassemble train`: a preset, with any value of it changed on the command line.

Everything heavy is imported once the preset is known, so that the list of presets comes at once.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from diffassemble.cli.arguments import understand
from diffassemble.training.presets import PRESETS

if TYPE_CHECKING:
    from diffassemble.training.config import Config

_HELP = """usage: diffassemble train PRESET --data.folders DIR [DIR ...] [--out DIR] [--resume] [OPTIONS]

Trains a model. Ctrl-C saves; killed at any moment, it goes on with --resume.

{}

For example:
  diffassemble train jigsaw --data.folders my/photos --training.minutes 60
  diffassemble train fragments --data.solids 200 --out runs/bowls
  diffassemble train jigsaw --resume --training.minutes 60

diffassemble train PRESET --help tells all options of a preset and their values."""


@dataclass(frozen=True)
class RunOptions:
    """Train a preset. Ctrl-C saves; killed at any moment, it goes on with --resume."""

    config: Annotated[Any, tyro.conf.arg(name="")]
    """What the run itself depends on: a Config of the preset's kind, whose parts name the options."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """folder for checkpoint, log and weights; default: runs/PRESET"""
    resume: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """go on from the checkpoint in --out, with the options of that run except --training.minutes"""
    logger: Literal["csv", "tensorboard", "wandb"] = "csv"
    """where the log goes beside log.csv: TensorBoard's files in --out, or Weights & Biases (which sends it out, unless
    WANDB_MODE=offline); both are extras to install"""


def parse_run(name: str, argv: list[str]) -> tuple[RunOptions, Path]:
    """The options of a run and its folder."""
    from diffassemble.core import InputError
    from diffassemble.training.config import read_config
    from diffassemble.training.run_folder import FILE

    preset = PRESETS[name].config
    options = _parse(name, argv, preset)
    folder = options.out or Path("runs") / name
    begun = folder / "config.json"
    if options.resume and not (folder / FILE).exists():
        raise InputError(f"{folder}: holds no checkpoint to go on from; leave out --resume to begin a run there")
    if options.resume and begun.exists():
        stored = read_config(begun, preset)
        minutes = preset.training.minutes
        options = _parse(name, argv, replace(stored, training=replace(stored.training, minutes=minutes)))
    if not options.resume and (folder / FILE).exists():
        raise InputError(f"{folder}: holds a run already; pass --resume to go on with it, or another --out")
    return options, folder


def _parse(name: str, argv: list[str], config: Config) -> RunOptions:
    return understand(RunOptions, argv, f"diffassemble train {name}", RunOptions(config))


def run(argv: list[str]) -> None:
    """Parse the preset and its changes, then train."""
    if argv and argv[0] in ("-h", "--help"):
        print(_HELP.format(_presets()))
        return
    if not argv or argv[0] not in PRESETS:
        from diffassemble.core import InputError

        named = f"there is no preset {argv[0]!r}; " if argv else ""
        raise InputError(f"{named}name a preset to train: {', '.join(PRESETS)}")

    options, folder = parse_run(argv[0], argv[1:])

    from lightning_fabric.utilities.rank_zero import rank_zero_only

    from diffassemble.training.loggers import check_logger
    from diffassemble.training.loop import Stopped, train
    from diffassemble.training.tasks import TASKS

    check_logger(options.logger)
    task = TASKS[PRESETS[argv[0]].task](options.config)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        train(options.config, task, folder, options.resume, options.logger)
    except Stopped as stopped:
        rank_zero_only(print)(f"{stopped}; go on with: diffassemble train {argv[0]} --resume --out {folder}")
        sys.exit(128 + stopped.signal)
    rank_zero_only(print)(_summary(folder))


def _presets() -> str:
    """All presets, by what they are for."""
    groups: dict[str, list[str]] = {}
    for name, preset in PRESETS.items():
        groups.setdefault(preset.group, []).append(name)
    width = max(map(len, PRESETS))
    return "\n\n".join(
        "\n".join([f"{purpose}:", *(f"  {name:<{width}}  {PRESETS[name].purpose}" for name in names)])
        for purpose, names in groups.items()
    )


def _summary(folder: Path) -> str:
    from diffassemble.training.run_folder import BEST, LAST

    if not (folder / BEST).exists():
        return f"weights: {folder / LAST}; nothing was validated yet, go on with --resume"
    return f"weights: {folder / BEST} (best on pictures held apart) and {folder / LAST}; log: {folder / 'log.csv'}"
