"""`diffassemble train`: a preset, with any value of it changed on the command line.

Everything heavy is imported once the preset is known, so that the list of presets comes at once.
"""

from __future__ import annotations

from pathlib import Path

from diffassemble.presets import PRESETS


def run(argv: list[str]) -> None:
    """Parse the preset and its changes, then train."""
    if argv and argv[0] in ("-h", "--help"):
        print(_help())
        return
    _check_name(argv)
    from diffassemble.cli.run_options import parse_run

    options, folder = parse_run(argv[0], argv[1:])

    from lightning_fabric.utilities.rank_zero import rank_zero_only

    from diffassemble.training import train
    from diffassemble.training.tasks import TASKS

    task = TASKS[PRESETS[argv[0]].task](options.config)
    folder.mkdir(parents=True, exist_ok=True)
    train(options.config, task, folder, options.resume)
    rank_zero_only(print)(_summary(folder))


def _check_name(argv: list[str]) -> None:
    if not argv or argv[0] not in PRESETS:
        from diffassemble.puzzle import InputError

        named = f"there is no preset {argv[0]!r}; " if argv else ""
        raise InputError(f"{named}name a preset to train: {', '.join(PRESETS)}")


def _summary(folder: Path) -> str:
    from diffassemble.training.record import BEST, LAST

    if not (folder / BEST).exists():
        return f"weights: {folder / LAST}; nothing was validated yet, go on with --resume"
    return f"weights: {folder / BEST} (best on pictures held apart) and {folder / LAST}; log: {folder / 'log.csv'}"


def _help() -> str:
    width = max(map(len, PRESETS))
    lines = [f"  {name:<{width}}  {preset.purpose}" for name, preset in PRESETS.items()]
    return "\n".join(
        [
            "usage: diffassemble train PRESET --data.folders DIR [DIR ...] [--out DIR] [--resume] [OPTIONS]",
            "",
            "Trains a model on folders of pictures. Killed at any moment, it goes on with --resume.",
            "",
            *lines,
            "",
            "diffassemble train PRESET --help tells all options of a preset and their values.",
        ]
    )
