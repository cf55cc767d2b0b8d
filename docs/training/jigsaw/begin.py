"""Lets the network with evidence begin as the paper's form: what it hears besides starts near zero.

    python docs/training/jigsaw/begin.py FOLDER

FOLDER is then what `--training.start-from` asks for.
"""

import sys

import torch

from diffassemble.network.denoiser import Denoiser
from diffassemble.training.presets import PRESETS

torch.manual_seed(0)
content, model = Denoiser.from_pretrained("jigsaw-paper-form"), Denoiser(PRESETS["jigsaw"].config.model)
known, fresh = content.state_dict(), model.state_dict()
fresh |= {name: value for name, value in known.items() if fresh[name].shape == value.shape}
# Nodes hear evidence between what a piece shows and what the board is like; poses come with opinions behind them.
joined, features = known["join.0.weight"], content.encoder.width // content.config.nodes_each
more = fresh["join.0.weight"].shape[1] - joined.shape[1]
fresh["join.0.weight"] = torch.cat([joined[:, :features], torch.zeros(len(joined), more), joined[:, features:]], 1)
pose = fresh["pose_embedding.0.weight"]
pose.zero_()[:, : content.space.width] = known["pose_embedding.0.weight"]
for name, value in fresh.items():
    if name.endswith("lin_edge.weight"):
        value.mul_(0.1)
model.load_state_dict(fresh)
model.save_pretrained(sys.argv[1])
