"""Fits the comparison of strips: learns the model "strips" from made pages, and calibrates how sure it is.

    python benchmarks/fit_strips.py OUT --pictures FOLDER [--pages 240] [--steps 2000]

makes that many shredded pages (`shredded_pages`; FOLDER has pictures that some of them show), whose sides are kept in
OUT/pages, learns from all but the first 40, fits the two calibrating numbers on these 40 and prints how often they are
right. OUT/config.json and OUT/model.safetensors are the model. Every side of a page has to find its neighbour among
all sides of the page, or that it has none. About a second a step and three a page on a busy core.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from diffassemble.outlines.strip_model import Comparison, StripModel, StripModelConfig
from diffassemble.outlines.strip_sides import DEPTH, read_sides, strip_frame
from diffassemble.outlines.strips import balanced

HELD_APART = 40
# Strips of a page that are looked at in one step.
TOGETHER = 10


class Page(NamedTuple):
    """The sides of a made page's strips, and where these belong."""

    bands: Float[Tensor, "n 2 channels l"]
    lengths: Int[Tensor, "n"]
    position: np.ndarray
    turned: np.ndarray

    def partners(self) -> Int[Tensor, "s"]:
        """The true neighbour of every side, or as many as there are sides for none."""
        found = torch.full((2 * len(self.position),), 2 * len(self.position))
        order = np.argsort(self.position)
        for one, other in pairwise(order):
            right, left = 2 * one + self.turned[one], 2 * other + 1 - self.turned[other]
            found[right], found[left] = int(left), int(right)
        return found


def read_page(seed: int, folder: Path, pictures: tuple[Path, ...]) -> Page:
    """The sides of the page with this seed, made if they are not kept yet."""
    from shredded_pages import make_shredded_page  # beside this script, which is not always run from there

    path = folder / f"{seed}.npz"
    if not path.exists():
        made = make_shredded_page(np.random.default_rng(seed), pictures)
        sides = read_sides(made.pieces, [strip_frame(contour) for contour in made.pieces.contours])
        shown, lengths = sides.bands.numpy().astype(np.float16), sides.lengths.numpy()
        np.savez(path, bands=shown, lengths=lengths, position=made.position, turned=made.turned)
    kept = np.load(path)
    bands = torch.from_numpy(kept["bands"].astype(np.float32))
    return Page(bands, torch.from_numpy(kept["lengths"]), kept["position"], kept["turned"])


def part_of(page: Page, rng: np.random.Generator) -> Page:
    """Some strips of a page that lie side by side, most often a stretch of their length, in other contrast.

    Sometimes the course of the borders is not told, or nothing else.
    """
    order = np.argsort(page.position)
    first = rng.integers(max(1, len(order) - TOGETHER + 1))
    chosen = order[first : first + TOGETHER]
    bands, lengths, turned = page.bands[chosen].clone(), page.lengths[chosen], page.turned[chosen]
    if rng.random() < 0.8:
        shortest = int(lengths.min())
        count = int(shortest * rng.uniform(0.3, 1))
        top = int(rng.integers(shortest - count + 1))
        cut = []
        for own, length, upside_down in zip(bands, lengths.tolist(), turned, strict=True):
            low = length - top - count if upside_down else top
            cut.append(torch.stack([own[0, :, low : low + count], own[1, :, length - low - count : length - low]]))
        bands, lengths = torch.stack(cut), torch.full_like(lengths, count)
    if rng.random() < 0.5:
        bands[:, :, :DEPTH] *= rng.uniform(0.7, 1.3)
    hidden = rng.random()
    if hidden < 0.3:
        bands[:, :, DEPTH + 2 : DEPTH + 4] = 0
    elif hidden < 0.4:
        bands[:, :, : DEPTH + 2] = 0
    return Page(bands, lengths, page.position[chosen], turned)


def choices(compared: Comparison) -> Float[Tensor, "s choices"]:
    """What every side chooses from: all sides, and none."""
    return torch.cat([compared.fits, compared.alone.expand(len(compared.fits), 1)], 1)


def learn(model: StripModel, pages: list[Page], steps: int, seed: int) -> None:
    """Cross-entropy of every side's choice."""
    rng, began = np.random.default_rng(seed), time.monotonic()
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=1e-3, betas=(0.9, 0.98))
    rates = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=steps, pct_start=0.1)
    losses, hits = [], []
    for step in range(1, steps + 1):
        part = part_of(pages[rng.integers(len(pages))], rng)
        scores, partners = choices(model(part.bands, part.lengths)), part.partners()
        loss = F.cross_entropy(scores, partners)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        rates.step()
        losses.append(loss.item())
        hits.append(float((scores.argmax(1) == partners).float().mean()))
        if step % 100 == 0:
            means = f"loss {np.mean(losses[-100:]):.3f} right {np.mean(hits[-100:]):.3f}"
            print(f"{step} {means} {time.monotonic() - began:.0f} s")


@torch.no_grad()
def calibrate(model: StripModel, pages: list[Page]) -> None:
    """Fit the two numbers, and print how often neighbours are right by how sure they are."""
    told, truth, ranked = [], [], []
    for page in pages:
        compared, partners = model(page.bands, page.lengths), page.partners()
        one, other = torch.triu_indices(len(partners), len(partners), 1)
        told.append(balanced(compared)[one, other])
        truth.append(partners[one] == other)
        inner = partners < len(partners)
        ranked.append((compared.fits.argmax(1) == partners)[inner].float())
    odds, right = torch.cat(told), torch.cat(truth).float()
    numbers = nn.Parameter(torch.tensor([0.0, 1.0]))
    solver = torch.optim.LBFGS([numbers], max_iter=100)

    def loss() -> Tensor:
        solver.zero_grad()
        with torch.enable_grad():
            value = F.binary_cross_entropy_with_logits(numbers[0] + numbers[1] * odds, right)
            value.backward()
        return value

    solver.step(loss)
    model.odds.copy_(numbers.detach())
    chance = model.calibrated(odds).sigmoid()
    first = 100 * torch.cat(ranked).mean()
    print(f"{len(pages)} pages held apart: {first:.1f} % rank their neighbour first; {numbers.tolist()}")
    for low, high in ((0.1, 0.5), (0.5, 0.9), (0.9, 0.99), (0.99, 0.999), (0.999, 1.01)):
        inside = (chance >= low) & (chance < high)
        print(f"told {low}–{min(high, 1)}: {int(right[inside].sum())} of {int(inside.sum())} right")


def main() -> None:
    """Read the options, make the pages, learn, calibrate and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--pages", type=int, default=240)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    pictures = tuple(sorted(options.pictures.iterdir())[:300]) if options.pictures else ()
    kept = options.out / "pages"
    kept.mkdir(parents=True, exist_ok=True)
    pages = [read_page(seed, kept, pictures) for seed in range(options.pages)]
    torch.manual_seed(options.seed)
    model = StripModel(StripModelConfig())
    learn(model, pages[HELD_APART:], options.steps, options.seed)
    calibrate(model.eval(), pages[:HELD_APART])
    model.save_pretrained(options.out)


if __name__ == "__main__":
    main()
