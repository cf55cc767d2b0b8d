"""`diffassemble models`: the models at hand and their scores."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

from diffassemble.cli.arguments import Flag


def models(prepare: Flag = False) -> None:
    """List the models that come with the package or were fetched from the hub before, with their scores.

    Args:
        prepare: Compile now all that any command would otherwise compile at its first use, and list nothing.
    """
    if prepare:
        _prepare()
        return
    from rich.table import Column, Table

    from diffassemble.cli.progress import show
    from diffassemble.network.pretrained import bundled_models, find_model

    numbers = (Column(heading, justify="right") for heading in ("parameters", "MB"))
    scores = "scores in percent: accuracy, and at the best turn of the whole"
    table = Table(Column("model", overflow="fold"), *numbers, scores, header_style="bold")
    for name, folder in [(name, find_model(name)) for name in bundled_models()] + _cached():
        weights = folder / "model.safetensors"
        table.add_row(name, _parameters(weights), f"{weights.stat().st_size / 1e6:.1f}", _scores(folder))
    if table.rows:
        show(table)
    else:
        print("no models at hand; train one with: diffassemble train jigsaw")


def _prepare() -> None:
    """Compile for all kinds, the slowest first, in two processes; print when each is ready."""
    import multiprocessing
    import sys
    import time
    from concurrent.futures import ProcessPoolExecutor, as_completed

    from diffassemble.core import InputError
    from diffassemble.kinds import kinds
    from diffassemble.kinds.compiling import prepare

    print(f"compiling for {', '.join(kinds())}; under a minute the first time", flush=True)
    began = time.monotonic()
    context = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
    if sys.platform != "win32":
        context.set_forkserver_preload(["torch", "numba", "diffassemble.kinds"])  # loaded once for both
    with ProcessPoolExecutor(2, context) as pool:
        jobs = {pool.submit(prepare, kind): kind for kind in kinds()}
        for job in as_completed(jobs):
            if (error := job.exception()) is not None:
                raise InputError(f"compiling for {jobs[job]} failed: {error!r}")
            print(f"{jobs[job]} are ready after {time.monotonic() - began:.0f} s", flush=True)


def _parameters(weights: Path) -> str:
    """How many numbers a file of weights holds, by its head alone."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(weights, framework="numpy") as tensors:
            return f"{sum(prod(tensors.get_slice(name).get_shape()) for name in tensors.keys()):,}"  # noqa: SIM118
    except (SafetensorError, OSError):
        return "unreadable"


def _scores(folder: Path) -> str:
    """The rows that `diffassemble evaluate --json` wrote for a model, if they are beside it."""
    lines = []
    try:
        for row in json.loads((folder / "scores.json").read_text()):
            damage = f", {row['missing']:.0%} missing" if row["missing"] else ""
            damage += f", {row['erode']} px eroded" if row["erode"] else ""
            lines.append(f"{row['data']} {row['grid']}{damage}: {row['accuracy']:.1f}, {row['accuracy_free']:.1f}")
    except (OSError, ValueError, KeyError, TypeError):
        return "none"
    return "\n".join(lines) or "none"


def _cached() -> list[tuple[str, Path]]:
    """Models of this package in the hub's cache."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repositories = scan_cache_dir().repos
    except CacheNotFound:
        return []
    found = [(one.repo_id, revision.snapshot_path) for one in repositories for revision in one.revisions]
    return sorted((name, folder) for name, folder in found if _is_ours(folder))


def _is_ours(folder: Path) -> bool:
    """Whether a model's configuration names a network of this package."""
    try:
        config = json.loads((folder / "config.json").read_text())
        return "kind" in config and (folder / "model.safetensors").is_file()
    except (OSError, ValueError, TypeError):
        return False
