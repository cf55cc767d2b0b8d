"""Cache pieces of varied pictures and the frozen backbone's maps of their four views, for some grids.

Files: cache/pieces_<folder>_<rows>x<cols>_<variant>.pixels.npy (N c 3 32 32, uint8; upright tiles, row by row) and
.maps.npy (N c 4 p, float16; view k is the tile turned clockwise by k).
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np
import torch

sys.path.insert(0, "site")
from backbone import Backbone
from content_model import turned_views
from pictures import cropped, load, relit, resized

SIZE = 32
BLOCKS = (7, 10)
WIDTH = (80 + 112) * 4


@torch.no_grad()
def maps_of(network: Backbone, pixels: torch.Tensor) -> torch.Tensor:
    """Maps after both blocks of every view of pieces in [0, 1], flat: (n 4 p)."""
    parts = []
    for group in turned_views(pixels).to(torch.bfloat16).split(288):
        early = network(group, BLOCKS[0])
        late = network.onward(early, BLOCKS[0] + 1, BLOCKS[1])
        parts.append(torch.cat([early.contiguous().flatten(1), late.contiguous().flatten(1)], 1))
    return torch.cat(parts).float().unflatten(0, (-1, 4))


def main() -> None:
    torch.set_num_threads(1)
    network = Backbone.pretrained().bfloat16()
    for job in sys.argv[1:]:
        folder, grid, variant, first, count = job.split(":")
        rows, cols = (int(x) for x in grid.split("x"))
        name = f"cache/pieces_{folder}_{grid}_{variant}_{first}"
        pictures = load(folder)[int(first) : int(first) + int(count)]
        began = time.process_time(), time.time()
        stem = name + ".part"
        pixel_file = np.lib.format.open_memmap(
            stem + ".pixels.npy", "w+", np.uint8, (len(pictures), rows * cols, 3, SIZE, SIZE)
        )
        map_file = np.lib.format.open_memmap(
            stem + ".maps.npy", "w+", np.float16, (len(pictures), rows * cols, 4, WIDTH)
        )
        for index, picture in enumerate(pictures):
            picture = picture.float() / 255
            random = np.random.default_rng((int(variant), rows, cols, int(first) + index))
            if int(variant) > 0:
                picture = relit(cropped(picture, cols / rows, 0.85, random), 0.15, random)
                picture = picture.flip(-1) if int(variant) % 2 else picture
            else:
                picture = (
                    cropped(picture, cols / rows, 0.9, random)
                    if random.random() < 0.5
                    else cropped(picture, cols / rows, 1.0, random)
                )
            whole = (resized(picture, rows * SIZE, cols * SIZE) * 255).round()
            tiles = whole.reshape(3, rows, SIZE, cols, SIZE).permute(1, 3, 0, 2, 4).reshape(-1, 3, SIZE, SIZE)
            pixel_file[index] = tiles.to(torch.uint8).numpy()
            map_file[index] = maps_of(network, tiles / 255).half().numpy()
        pixel_file.flush()
        map_file.flush()
        for kind in (".pixels.npy", ".maps.npy"):
            os.rename(stem + kind, name + kind)
        print(job, f"{time.process_time() - began[0]:.0f} s CPU, {time.time() - began[1]:.0f} s", flush=True)


if __name__ == "__main__":
    main()
