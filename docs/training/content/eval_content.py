"""Report a content network on val: accuracy by steps, whole and with pieces missing. Usage: eval_content.py RUN PUZZLES [quick]"""

import json
import sys
import time

sys.path.insert(0, "site")
from pathlib import Path

import torch
from pictures import load
from train_content import load_network, validate

torch.set_num_threads(1)
folder, puzzles = Path(sys.argv[1]), int(sys.argv[2])
network, backbone = load_network(folder)
results = {}
jobs = [("faces", 6, 0.0), ("paintings", 6, 0.0), ("faces", 6, 0.3), ("paintings", 6, 0.3), ("faces_hq", 12, 0.0)]
for kind, grid, missing in jobs[: 1 if "quick" in sys.argv else None]:
    pictures = load(kind, "val", chosen=range(puzzles))
    for steps in (1, 10) if grid > 6 or missing else (1, 2, 5, 10, 20):
        began = time.process_time()
        found = validate(network, backbone, pictures, grid, grid, missing, steps, every=True, seed=0)
        name = f"{kind} {grid}x{grid}{' -30%' if missing else ''} steps {steps}"
        results[name] = {
            **found,
            "puzzles": puzzles,
            "seed": 0,
            "cpu_seconds_per_puzzle": round((time.process_time() - began) / puzzles, 2),
        }
        print(name, results[name], flush=True)
        if "quick" not in sys.argv:
            (folder / "val.json").write_text(json.dumps(results, indent=1))
