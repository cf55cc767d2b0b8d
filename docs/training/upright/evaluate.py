"""How often the upright classifier is right on folders of upright pictures, and how often when it is sure.

    python docs/training/upright/evaluate.py MODEL DIR [DIR ...]

Whole; with 30 % of 6×6 cells missing; the middle two thirds of the picture, wide and tall; and at 48 pixels a side.
"""

import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

from diffassemble.io.pictures import read_picture
from diffassemble.network.upright import Upright, upright_turn
from diffassemble.squares.pictures import training_pictures
from diffassemble.training.upright import with_lost_cells

LEVELS = (0.0, 0.5, 0.8, 0.9, 0.99)

torch.set_num_threads(1)
model = Upright.from_pretrained(sys.argv[1])
results = {}
for folder in map(Path, sys.argv[2:]):
    pictures = [read_picture(path) for path in training_pictures(str(folder))]
    cut = [picture.shape[-1] // 6 for picture in pictures]
    kinds = {
        "whole": pictures,
        "30 % missing": [with_lost_cells(picture, number, 0.3) for number, picture in enumerate(pictures)],
        "wide": [picture[:, by:-by] for picture, by in zip(pictures, cut, strict=True)],
        "tall": [picture[:, :, by:-by] for picture, by in zip(pictures, cut, strict=True)],
        "48 px": [F.interpolate(p[None], (48, 48), mode="bilinear", antialias=True)[0] for p in pictures],
    }
    for name, shown in kinds.items():
        turn, sure = torch.tensor([upright_turn(model, picture) for picture in shown]).T
        told = {}
        for level in LEVELS:
            chosen = sure >= level
            right = float((turn[chosen] == 0).float().mean()) if chosen.any() else None
            told[f"from {level}"] = [int(chosen.sum()), right if right is None else round(100 * right, 1)]
        results[f"{folder.parent.name}/{folder.name} {name}"] = told
        print(folder, name, told, "mean probability", round(float(sure.mean()), 3), flush=True)
print(json.dumps(results, indent=1))
