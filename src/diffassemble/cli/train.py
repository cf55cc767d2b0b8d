"""`diffassemble train`: a preset, with any value of it changed on the command line.

Everything heavy is imported once the preset is known, so that the list of presets comes at once.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import OmitSubcommandPrefixes, arg
from tyro.extras import subcommand_type_from_defaults

from diffassemble.cli.arguments import Flag, option, understand
from diffassemble.training.presets import PRESETS

if TYPE_CHECKING:
    from diffassemble.training.config import Config

_HELP = """usage: diffassemble train PRESET --data.folders DIR [DIR ...] [--out DIR] [--resume] [OPTIONS]

Trains a model. Ctrl-C saves; killed at any moment, it continues with --resume.

{}

For example:
  diffassemble train jigsaw --data.folders my/photos --training.minutes 60
  diffassemble train fragments --data.solids 200 --out runs/bowls
  diffassemble train jigsaw --resume --training.minutes 60

diffassemble train PRESET --help lists all options of a preset and their values."""


@dataclass(frozen=True)
class Run:
    """Train a preset. Ctrl-C saves; killed at any moment, it continues with --resume."""

    out: Annotated[Path | None, option("DIR")] = None
    """folder for checkpoint, log and weights; default: runs/PRESET"""
    resume: Flag = False
    """continue from the checkpoint in --out, with the options of that run except --training.minutes"""
    logger: Literal["csv", "tensorboard", "wandb"] = "csv"
    """where the log goes beside log.csv: TensorBoard's files in --out, or Weights & Biases (which sends it out, unless
    WANDB_MODE=offline); both are extras to install"""


@dataclass(frozen=True)
class RunOptions(Run):
    """Train a preset. Ctrl-C saves; killed at any moment, it continues with --resume."""

    config: Annotated[Any, arg(name="")] = None
    """The settings of the preset, whose parts name the options."""


# What shells complete: without the settings of each preset, since these bring torch with them.
_CHOICE: Any = OmitSubcommandPrefixes[subcommand_type_from_defaults({name: Run() for name in PRESETS})]  # type: ignore[misc]
OPTIONS = make_dataclass("Train", [("preset", _CHOICE)])


def parse_run(name: str, argv: list[str]) -> tuple[RunOptions, Path]:
    """The options of a run and its folder."""
    from diffassemble.core import InputError
    from diffassemble.training.config import read_config
    from diffassemble.training.run_folder import FILE

    def parse(config: Config) -> RunOptions:
        return understand(RunOptions, argv, f"diffassemble train {name}", RunOptions(config=config))

    preset = PRESETS[name].config
    options = parse(preset)
    folder = options.out or Path("runs") / name
    begun, known = folder / "config.json", (folder / FILE).exists()
    if options.resume and not known:
        raise InputError(f"{folder}: holds no checkpoint to go on from; leave out --resume to begin a run there")
    if options.resume and begun.exists():
        stored = read_config(begun, preset)
        options = parse(replace(stored, training=replace(stored.training, minutes=preset.training.minutes)))
    if not options.resume and known:
        raise InputError(f"{folder}: holds a run already; pass --resume to go on with it, or another --out")
    return options, folder


def run(argv: list[str]) -> None:
    """Parse the preset and its changes, then train."""
    if argv and argv[0] in ("-h", "--help"):
        groups = dict.fromkeys(preset.group for preset in PRESETS.values())
        width = max(map(len, PRESETS))
        lines = {
            group: "\n".join(f"  {name:<{width}}  {one.purpose}" for name, one in PRESETS.items() if one.group == group)
            for group in groups
        }
        print(_HELP.format("\n\n".join(f"{group}:\n{presets}" for group, presets in lines.items())))
        return
    if not argv or argv[0] not in PRESETS:
        from diffassemble.core import InputError

        named = f"there is no preset {argv[0]!r}; " if argv else ""
        raise InputError(f"{named}name a preset to train: {', '.join(PRESETS)}")

    options, folder = parse_run(argv[0], argv[1:])

    from lightning_fabric.utilities.rank_zero import rank_zero_only

    from diffassemble.training.loop import Stopped, train
    from diffassemble.training.run_folder import BEST, LAST, check_logger

    check_logger(options.logger)
    task = PRESETS[argv[0]].learner(options.config)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        train(options.config, task, folder, options.resume, options.logger)
    except Stopped as stopped:
        rank_zero_only(print)(f"{stopped}; go on with: diffassemble train {argv[0]} --resume --out {folder}")
        sys.exit(128 + stopped.signal)
    done = f"weights: {folder / LAST}; nothing was validated yet, go on with --resume"
    if (folder / BEST).exists():
        best = f"{folder / BEST} (best on held-out pictures)"
        done = f"weights: {best} and {folder / LAST}; log: {folder / 'log.csv'}"
    rank_zero_only(print)(done)
