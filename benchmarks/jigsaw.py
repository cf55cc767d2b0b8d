"""A photographed jigsaw puzzle against light, solved whole, with pieces missing, and a block of it with foreign pieces.

`python benchmarks/jigsaw.py DIR [--shapes-only]`, where DIR has `silhouettes/`, `colour/` and `truth.csv` (id, row,
column, upright). Seconds are of the processor, of one thread, without reading the photographs.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import tyro
from jaxtyping import UInt8
from PIL import Image
from scipy import ndimage

from diffassemble.assembly.answer import assemble
from diffassemble.core import Puzzle, Step
from diffassemble.evaluation.outline_data import Layout, read_recorded
from diffassemble.evaluation.outlines import score_outlines
from diffassemble.outlines.grow import GrowSolver

# Silhouettes are inside below this level; over this much of it alpha is soft.
_LEVEL, _SOFT = 0.45, 0.06
_BLOCK, _FOREIGN = 10, 20


def main(data: Path, /, shapes_only: bool = False, seeds: int = 2) -> None:
    """Print a line for every puzzle."""
    puzzle, layout = _read(data)
    if shapes_only:
        puzzle = replace(puzzle, pieces=replace(puzzle.outlines, coloured=False))
    assemble(puzzle.reordered(torch.arange(9)), GrowSolver())  # compiles
    _solve("whole", puzzle, layout)
    assert puzzle.truth is not None
    cells = (puzzle.truth.translation / float(puzzle.outlines.areas.sqrt().mean())).round().long()
    for seed in range(seeds):
        generator = torch.Generator().manual_seed(seed)
        for missing in (0.1, 0.3):
            kept = torch.randperm(len(puzzle), generator=generator)[: round(len(puzzle) * (1 - missing))]
            _solve(f"{missing:.0%} missing, seed {seed}", puzzle.reordered(kept), layout)
        corner = (torch.rand(2, generator=generator) * (cells.amax(0) + 2 - _BLOCK)).long()
        inside = ((cells >= corner) & (cells < corner + _BLOCK)).all(1)
        near = ((cells >= corner - 1) & (cells <= corner + _BLOCK)).all(1)
        far = (~near).nonzero().flatten()
        foreign = far[torch.randperm(len(far), generator=generator)[:_FOREIGN]]
        chosen = torch.cat([inside.nonzero().flatten(), foreign])
        _solve(f"block with {_FOREIGN} foreign, seed {seed}", puzzle.reordered(chosen), layout, _FOREIGN)


def _solve(label: str, puzzle: Puzzle, layout: Layout, foreign: int = 0) -> None:
    """Solve and print; the last so many pieces are foreign: they are right if they are left out."""
    began = time.process_time()
    assembly = assemble(puzzle, GrowSolver())
    seconds = time.process_time() - began
    own = torch.arange(len(puzzle) - foreign)
    objects, step = assembly.placements.numbers, Step.last(assembly.placements[own])
    score = score_outlines(puzzle.reordered(own), layout, step, seconds)
    told = f"{label}: {score.accuracy:.1f} % of {score.pieces} right, neighbours {score.neighbours:.1f} %"
    told += f", above 0.9 sure {score.sure}, of which right {score.sure_right}, {seconds:.1f} s"
    if foreign:
        strangers = assembly.confidence[len(own) :]
        out = int((objects[len(own) :] < 0).sum())
        told += f"; foreign ones left out {out} of {foreign}, sure {int((strangers > 0.9).sum())}"
    print(told, flush=True)


def _read(data: Path) -> tuple[Puzzle, Layout]:
    """The pieces by a fixed threshold of the silhouettes, with the colours of the other photographs."""
    with TemporaryDirectory() as folder:
        for file in sorted((data / "silhouettes").glob("*.jpg")):
            colours = Image.open(data / "colour" / file.name).convert("RGB")
            colours.putalpha(Image.fromarray(_alpha(np.asarray(Image.open(file).convert("L")))))
            colours.save(Path(folder) / f"{file.stem}.png", compress_level=1)
        (Path(folder) / "truth.csv").write_bytes((data / "truth.csv").read_bytes())
        return read_recorded(Path(folder))


def _alpha(grey: UInt8[np.ndarray, "h w"]) -> UInt8[np.ndarray, "h w"]:
    """Soft along the border of the largest dark spot, its holes filled."""
    light = grey / np.float32(255)
    spots, count = ndimage.label(light < _LEVEL)
    largest = 1 + int(np.argmax(ndimage.sum_labels(light < _LEVEL, spots, range(1, count + 1))))
    inside = ndimage.binary_fill_holes(spots == largest)
    soft = np.clip((_LEVEL - light) / _SOFT / 2 + 0.5, 0, 1)
    soft = np.where(ndimage.binary_erosion(inside), 1, np.where(ndimage.binary_dilation(inside), soft, 0))
    return (255 * soft).round().astype(np.uint8)


if __name__ == "__main__":
    tyro.cli(main)
