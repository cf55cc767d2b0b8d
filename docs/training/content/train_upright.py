"""Train the upright head on pooled features of whole pictures; choose and calibrate on training pictures held apart."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

sys.path.insert(0, "site")
from pictures import FOLDERS, HELD, held_apart
from upright_model import UprightConfig, UprightHead

CACHE = Path("cache")


def load_pooled(variants: list[int]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Pooled features (pictures, 4 turns, p) to learn from by folder, and held apart by folder and variant."""
    train: dict[str, list[Tensor]] = {f: [] for f in FOLDERS}
    held: dict[str, Tensor] = {}
    for folder in FOLDERS:
        for variant in variants:
            maps = torch.from_numpy(np.load(CACHE / f"pooled_{folder}_{variant}.npy"))
            apart = held_apart(len(maps), HELD[folder])
            train[folder].append(maps[~apart])
            held[f"{folder}{variant}"] = maps[apart]
    return {f: torch.cat(parts) for f, parts in train.items()}, held


def fitted_temperature(logits: Tensor) -> tuple[float, float]:
    """The temperature with the smallest cross-entropy, and that cross-entropy; turn 0 is always the truth."""
    target = torch.zeros(len(logits), dtype=torch.long)
    heats = torch.linspace(0.4, 4, 145)
    losses = torch.stack([F.cross_entropy(logits / heat, target) for heat in heats])
    return float(heats[losses.argmin()]), float(losses.min())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--variants", default="0,2")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--decay", type=float, default=0.1)
    parser.add_argument("--dropout", type=float, default=0.4)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--smoothing", type=float, default=0.02)
    parser.add_argument("--shares", default="0.2,0.6,0.2")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(given.seed)
    random = np.random.default_rng(given.seed)
    folder = Path("runs") / given.name
    folder.mkdir(parents=True, exist_ok=True)
    train, held = load_pooled([int(v) for v in given.variants.split(",")])
    config = UprightConfig(hidden=given.hidden, dropout=given.dropout)
    head = UprightHead(config)
    sample = torch.cat([x[:600].flatten(0, 1) for x in train.values()]).float()
    head.mean.copy_(sample.mean(0))
    head.scale.copy_(1 / (sample.std(0) + 0.05))
    average = {k: v.clone() for k, v in head.state_dict().items()}
    optimiser = torch.optim.AdamW(head.parameters(), lr=given.rate, weight_decay=given.decay)
    shares = [float(x) for x in given.shares.split(",")]
    began, losses, best = time.process_time(), [], None
    for step in range(given.steps):
        for group in optimiser.param_groups:
            group["lr"] = (
                given.rate * min(1, (step + 1) / 100) * (0.02 + 0.49 * (1 + math.cos(math.pi * step / given.steps)))
            )
        counts = random.multinomial(given.batch, shares)
        views = torch.cat(
            [train[f][random.integers(0, len(train[f]), c)] for f, c in zip(FOLDERS, counts, strict=True)]
        ).float()
        logits = head(views.flatten(0, 1)).view(-1, 4)
        loss = F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long), label_smoothing=given.smoothing)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        keep = min(0.995, (1 + step) / (10 + step))
        with torch.no_grad():
            for key, value in head.state_dict().items():
                average[key].lerp_(value, 1 - keep)
        losses.append(float(loss.detach()))
        if (step + 1) % max(1, given.steps // 3) == 0:
            probe = UprightHead(config).eval()
            probe.load_state_dict(average)
            with torch.no_grad():
                found = {k: probe(v.float().flatten(0, 1)).view(-1, 4) for k, v in held.items()}
            scores = {k: round(100 * float((v.argmax(1) == 0).float().mean()), 1) for k, v in found.items()}
            temperature, loss_held = fitted_temperature(torch.cat([v for k, v in found.items() if "faces" not in k]))
            print(
                given.name,
                step + 1,
                f"{time.process_time() - began:.0f} s CPU",
                f"{np.mean(losses):.3f}",
                f"nll {loss_held:.4f} T {temperature:.2f}",
                scores,
                flush=True,
            )
            losses = []
            if best is None or loss_held < best:
                best = loss_held
                save_file({k: v.contiguous() for k, v in average.items()}, folder / "model.safetensors")
                settings = {
                    "model": asdict(replace(config, temperature=temperature)),
                    "held_apart": scores,
                    "nll": loss_held,
                }
                (folder / "config.json").write_text(json.dumps({**settings, "training": vars(given)}, indent=1))


if __name__ == "__main__":
    main()
