"""How the bundled verification of matches was fitted: examples of several makers, kept a file each, then a short fit.

    python docs/training/fracture-matching/verification.py examples MAKER --data BREAKING_BAD --meshes DIR --limit N
    python docs/training/fracture-matching/verification.py fit --start FOLDER --out FOLDER

A maker is bb (Breaking Bad's training fractures), meshes (whole solids broken here), solids (made of chance, broken
rough), smooth or saw (the same, broken smoothly or sawn); with -dev at its end it gives what is held apart.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from diffassemble.core import InputError, Mesh
from diffassemble.core.seeds import seeded
from diffassemble.fragments.breaking import fracture, scatter
from diffassemble.fragments.datasets import break_files, find_fractures
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.shapes import SOLIDS, make_solid
from diffassemble.training.fracture_matching import damaged, drawn_damage, match_examples

MAKERS = ("bb", "solids", "meshes", "smooth", "saw")
ROUGHNESS = {"solids": 1.0, "smooth": 0.35, "saw": 0.0}
# Every fourth training object of Breaking Bad is held apart.
APART = slice(1, None, 4)


def fractures(maker: str, root: Path, meshes: Path) -> list[Callable[[], list[Mesh]]]:
    """What makes the fragments of each object."""
    apart, name = maker.endswith("-dev"), maker.removesuffix("-dev")
    if name in ROUGHNESS:
        return [made_solid(number, ROUGHNESS[name]) for number in range(10**5 * apart, 10**5 * apart + 400)]
    objects = sorted({one.object for one in find_fractures(root, "train")})
    held = set(objects[APART])
    if name == "bb":
        found = [one for one in find_fractures(root, "train", pieces=(3, 20)) if (one.object in held) == apart]
        return [one.meshes for one in (found if apart else found + find_fractures(root, "all", "artifact", (3, 20)))]
    out = frozenset(one.object for one in find_fractures(root, "val"))
    files = [one for one in break_files(meshes, 1, (4, 14), out) if not any(name in one.source.stem for name in held)]
    return [one.meshes for number, one in enumerate(files) if (number % 6 == 5) == apart]


def made_solid(number: int, roughness: float) -> Callable[[], list[Mesh]]:
    """A solid of 4 to 14 pieces, every third with chips."""

    def make() -> list[Mesh]:
        generator = seeded(5, number)
        solid = make_solid(sorted(SOLIDS)[number % len(SOLIDS)], generator)
        pieces = 4 + int(11 * float(torch.rand((), generator=generator)) ** 1.5)
        return fracture(solid, pieces, generator, 0.2 if number % 3 == 0 else 0.0, roughness)

    return make


def make_examples(maker: str, root: Path, meshes: Path, models: FractureModels, limit: int, out: Path) -> None:
    """Six in ten objects get noise, wear or are clouds; of four in ten up to 30 % of the pieces are missing."""
    items = fractures(maker, root, meshes)
    for number in np.random.default_rng(1).permutation(len(items))[:limit]:
        file, generator = out / maker / f"{number:05d}.npz", seeded(9, int(number), 0)
        drawn, damage = torch.rand(2, generator=generator), drawn_damage(generator)
        missing = 0.0 if drawn[0] < 0.6 else 0.3 * float(drawn[1])
        if not file.exists():
            try:
                puzzle = damaged(scatter(items[number](), generator), damage, missing, generator)
            except InputError:  # a solid that can't be broken that way
                continue
            found = match_examples(puzzle, models, generator)
            file.parent.mkdir(parents=True, exist_ok=True)
            np.savez(file, numbers=found.numbers, true=found.true)


def load(maker: str, out: Path) -> tuple[np.ndarray, np.ndarray]:
    """All examples of a maker."""
    files = [np.load(file) for file in sorted((out / maker).glob("*.npz"))]
    return np.concatenate([file["numbers"] for file in files]), np.concatenate([file["true"] for file in files])


def fit(models: FractureModels, out: Path, steps: int = 2000) -> None:
    """Cross-entropy of blurred numbers with strong weight decay, which precision gained most by."""
    train = [load(maker, out) for maker in MAKERS]
    numbers, true = (torch.from_numpy(np.concatenate(parts)) for parts in zip(*train, strict=True))
    network = models.verifier
    torch.manual_seed(0)
    network[0].running_mean.copy_(numbers.mean(0))
    network[0].running_var.copy_(numbers.var(0) + 1e-6)
    network.eval()  # the statistics stay those of all examples
    optimiser = torch.optim.AdamW(network.parameters(), 2e-3, weight_decay=1.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, steps)
    blur = 0.15 * network[0].running_var.sqrt()
    for _ in range(steps):
        rows = torch.randint(len(numbers), (1024,))
        blurred = numbers[rows] + blur * torch.randn(len(rows), numbers.shape[1])
        loss = F.binary_cross_entropy_with_logits(network(blurred)[:, 0], true[rows].float())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    for maker in MAKERS:
        if (out / f"{maker}-dev").is_dir():
            report(maker, models, *load(f"{maker}-dev", out))


def report(maker: str, models: FractureModels, numbers: np.ndarray, true: np.ndarray) -> None:
    """Recall above 0.5, and precision above 0.9, on what is held apart."""
    chance = models.verification(numbers)
    sure = chance > 0.9
    found, right = 100 * (chance[true] > 0.5).mean(), 100 * true[sure].mean()
    print(f"{maker}: {len(true)} fits, {true.sum()} true; found {found:.1f} %, sure {sure.sum()}, right {right:.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=("examples", "fit"))
    parser.add_argument("maker", nargs="?", default="bb")
    parser.add_argument("--data", type=Path, default=Path("breaking_bad"))
    parser.add_argument("--meshes", type=Path, default=Path("meshes"))
    parser.add_argument("--start", default="fracture-matching")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--examples", type=Path, default=Path("runs/matches"))
    parser.add_argument("--out", type=Path, default=Path("runs/verification"))
    asked = parser.parse_args()
    models = FractureModels.from_pretrained(asked.start).eval()
    if asked.work == "examples":
        make_examples(asked.maker, asked.data, asked.meshes, models, asked.limit, asked.examples)
    else:
        fit(models, asked.examples)
        models.save_pretrained(asked.out)


if __name__ == "__main__":
    main()
