"""How well true assemblies, turned anyhow, are stood up: errors of their absolute poses, up to 15°, pose to 30°.

python docs/training/orientation/evaluate.py MODEL BREAKING_BAD [SPLIT [TRIAL]]
"""

from __future__ import annotations

import sys

import torch

from diffassemble.core import Placements, Poses
from diffassemble.core.poses import random_rotations
from diffassemble.core.seeds import seeded
from diffassemble.evaluation.fragments import ObjectCell, score_object
from diffassemble.evaluation.rows import summarise
from diffassemble.evaluation.sweep import Draws
from diffassemble.fragments.datasets import find_fractures
from diffassemble.fragments.orientation import OrientationModel
from diffassemble.fragments.standing import stood

SEED = 31


def main(name: str, data: str, split: str = "val", *trial: str) -> None:
    """Stand every fracture up once and print the means over classes."""
    network = OrientationModel.from_pretrained(name).eval()
    fractures = find_fractures(data, "train" if split == "train" else "val")
    draws = Draws(ObjectCell(split, fractures), None, None, 0, None)
    draws.check()
    scores, turns = [], []
    for number in range(len(draws)):
        case, _ = draws.case(number)
        truth = case.puzzle.truth
        assert truth is not None
        turn = random_rotations(1, seeded(SEED, number, *map(int, trial)))[0]
        lying = Poses(turn @ truth.rotation, truth.translation @ turn.T)
        answer = stood(case.puzzle, lying, torch.ones(len(truth), dtype=torch.bool), network.canonical_rotation)
        scores.append(score_object(case, Placements(answer, torch.zeros(len(answer))), "none"))
        turns.append(answer.rotation[0] @ truth.rotation[0].T)
    (found, _, _), left = summarise(scores), torch.stack(turns)
    cosines = torch.stack([left[:, 1, 1], (left.diagonal(dim1=1, dim2=2).sum(1) - 1) / 2])
    up, pose = 100 * (cosines.clamp(-1, 1).acos().rad2deg() < torch.tensor([[15.0], [30.0]])).float().mean(1)
    print(f"{len(scores)} fractures: up {up:.1f} %, pose {pose:.1f} %")
    print(
        f"RMSE(R) {found['rmse_r']:.1f}°, RMSE(T) {found['rmse_t']:.1f}, part accuracy {found['part_accuracy']:.1f} %"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
