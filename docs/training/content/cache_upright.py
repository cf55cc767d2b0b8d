"""Cache the feature maps after block 10 of varied whole pictures in their four turns."""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from backbone import Backbone, four_turns
from pictures import FOLDERS, cropped, damaged, load, relit, resized
from torch import Tensor

sys.path.insert(0, "site")
BLOCK = 10
VARIANTS = 6
SHAPES = {0: (192, 192), 1: (192, 192), 2: (192, 192), 3: (192, 192), 4: (160, 224), 5: (224, 160)}


def vary(picture: Tensor, variant: int, random: np.random.Generator) -> Tensor:
    """Variant 0 is plain; 1 cropped; 2 and 3 with holes and wrong cells; 4 wide; 5 tall."""
    height, width = SHAPES[variant]
    if variant == 0:
        return resized(picture, height, width)
    picture = cropped(picture, width / height, 0.8, random)
    if random.random() < (1.0 if variant == 1 else 0.5):
        picture = picture.flip(-1)
    picture = resized(relit(picture, 0.15, random), height, width)
    if variant in (2, 3) or (variant > 3 and random.random() < 0.5):
        rows = int(random.integers(4, 13))
        cols = max(2, round(rows * width / height))
        wrong = random.uniform(0, 0.15) if random.random() < 0.4 else 0.0
        picture = damaged(picture, rows, cols, random.uniform(0.1, 0.45), wrong, random)
    return picture


def main() -> None:
    torch.set_num_threads(1)
    network = Backbone.pretrained().bfloat16()
    for variant in map(int, sys.argv[1:]):
        height, width = SHAPES[variant]
        for folder in FOLDERS:
            pictures = load(folder)
            start = time.time()
            shape = (len(pictures), 4, 112 * (height // 16) * (width // 16))
            file = np.lib.format.open_memmap(f"cache/upright_{folder}_{variant}.npy.part", "w+", np.float16, shape)
            for first in range(0, len(pictures), 4):
                group = pictures[first : first + 4].float() / 255
                varied = torch.stack(
                    [vary(p, variant, np.random.default_rng((variant, first + i))) for i, p in enumerate(group)]
                )
                with torch.no_grad():
                    views = four_turns(varied.bfloat16())
                    if height == width:
                        maps = network(torch.cat(views), BLOCK).unflatten(0, (4, -1))
                    else:
                        even, odd = (network(torch.cat(views[k::2]), BLOCK).unflatten(0, (2, -1)) for k in (0, 1))
                        maps = [even[0], odd[0], even[1], odd[1]]
                for turn in range(4):
                    file[first : first + len(group), turn] = maps[turn].contiguous().flatten(1).half().numpy()
            file.flush()
            import os

            os.rename(f"cache/upright_{folder}_{variant}.npy.part", f"cache/upright_{folder}_{variant}.npy")
            print(folder, variant, f"{time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
