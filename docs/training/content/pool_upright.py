"""Pool the maps after block 10 and after the last block of cached pictures into three rows."""

import sys
import time

sys.path.insert(0, "site")
import numpy as np
import torch
import torch.nn.functional as F
from backbone import Backbone
from cache_upright import SHAPES
from pictures import FOLDERS

torch.set_num_threads(1)
net = Backbone.pretrained().bfloat16()
for variant in map(int, sys.argv[1:]):
    for folder in FOLDERS:
        maps = np.load(f"cache/upright_{folder}_{variant}.npy", mmap_mode="r")
        h, w = (x // 16 for x in SHAPES[variant])
        t = time.process_time()
        out = np.empty((len(maps), 4, 3 * (1280 + 112)), np.float16)
        with torch.no_grad():
            for i in range(0, len(maps), 8):
                block = torch.from_numpy(maps[i : i + 8])
                for k in range(4):
                    m = (
                        block[:, k]
                        .reshape(-1, 112, *((h, w) if k % 2 == 0 else (w, h)))
                        .bfloat16()
                        .contiguous(memory_format=torch.channels_last)
                    )
                    last = net.onward(m, 11, 16)
                    out[i : i + 8, k] = (
                        torch.cat([F.adaptive_avg_pool2d(x.float(), (3, 1)).flatten(1) for x in (last, m)], 1)
                        .half()
                        .numpy()
                    )
        np.save(f"cache/pooled_{folder}_{variant}.npy", out)
        print(folder, variant, f"{time.process_time() - t:.0f} s CPU", flush=True)
