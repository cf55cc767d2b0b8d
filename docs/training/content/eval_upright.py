"""Report the chosen upright classifier on val, once: whole, with 30 % of 6×6 cells missing, wide and tall."""

import json
import sys

sys.path.insert(0, "site")
from pathlib import Path

import numpy as np
import torch
from backbone import Backbone
from pictures import damaged, load
from upright_model import Upright

torch.set_num_threads(1)
folder = Path(sys.argv[1])
model = Upright.load(folder, Backbone.pretrained().bfloat16())
results = {}


def ask(name, pictures):
    chances = torch.stack([model.probabilities(p) for p in pictures])
    right = chances.argmax(1) == 0
    sure = chances.max(1).values
    bins = {
        f">{t}": [int((sure > t).sum()), round(100 * float(right[sure > t].float().mean()), 1)]
        for t in (0.5, 0.8, 0.9, 0.99)
    }
    results[name] = {
        "pictures": len(right),
        "right": round(100 * float(right.float().mean()), 1),
        "mean_sure": round(100 * float(sure.mean()), 1),
        **bins,
    }
    print(name, results[name], flush=True)


for kind, limit in (("paintings", 300), ("faces", 300), ("photos", 60)):
    whole = [p.float() / 255 for p in load(kind, "val")[:limit]]
    ask(kind, whole)
    holed = [damaged(p, 6, 6, 0.3, 0.0, np.random.default_rng((7, i))) for i, p in enumerate(whole)]
    ask(kind + " -30%", holed)
    if kind != "faces":
        side = whole[0].shape[-1]
        cut = side // 6
        ask(kind + " wide 3:2", [p[:, cut : side - cut] for p in whole[:150]])
        ask(kind + " tall 2:3", [p[:, :, cut : side - cut] for p in whole[:150]])
(folder / "val.json").write_text(json.dumps(results, indent=1))
