"""Train a tiny model on your own pictures for a few steps; real training differs only in its numbers.

python examples/05_tiny_training.py [folder of pictures]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import skimage.data
from PIL import Image

if len(sys.argv) > 1:
    folder = Path(sys.argv[1])
else:
    folder = Path("pictures")
    folder.mkdir(exist_ok=True)
    for name in ("astronaut", "chelsea", "coffee", "rocket"):
        Image.fromarray(getattr(skimage.data, name)()).resize((160, 160)).save(folder / f"{name}.png")

tiny = "--model.width 32 --model.layers 1 --model.heads 2 --model.features 8 --training.steps 3 --data.held-apart 1"
words = [sys.executable, "-m", "diffassemble", "train", "jigsaw", "--data.folders", str(folder), "--out", "tiny-run"]
subprocess.run([*words, *tiny.split()], check=True)
print("the weights are in tiny-run; use them with --model tiny-run/best or tiny-run/last")
