"""Fits what the colours on both sides of a seam are worth, on solids that are made, broken and painted by code.

    python benchmarks/calibrate_colours.py --objects 24

Hypotheses of all pairs are found by shape alone, then the fragments are painted several times over: stripes,
blotches, gradients, or one colour, with breaks of another one, noise, and light that differs from scan to scan.
Prints the constants of `ColourConfig` that separate true and wrong candidates best, each half of the weight.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import torch
from scipy.optimize import minimize

from diffassemble.fragments.breaking import fracture, scatter
from diffassemble.fragments.clusters import Cluster, FractureSide, Fragment
from diffassemble.fragments.contact import IDENTITY, Pose, compose, inverse, moved, pose_rows, transformed
from diffassemble.fragments.descriptors import rim_colours, true_breaks
from diffassemble.fragments.matches import level_for, match_clusters, prepare
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.pair_search import Effort, Sides
from diffassemble.fragments.shapes import SOLIDS, make_solid
from diffassemble.fragments.surface import Sample
from diffassemble.fragments.verification import VERIFICATION, Match, contrasts, seams

PAINTS = ("stripes", "blotches", "gradient", "plain")


def coat(kind: str, places: np.ndarray, some: np.random.Generator) -> np.ndarray:
    """sRGB in [0, 1] of places in the whole, whose longest side is 1."""
    base, other = some.uniform(0.2, 0.9, (2, 3))
    waves, phase = some.normal(size=(6, 3)) * 2 * np.pi * some.uniform(1, 4), some.uniform(0, 2 * np.pi, 6)
    share = {
        "stripes": lambda: np.sin(places @ waves[0] + phase[0]) > 0,
        "blotches": lambda: 1 / (1 + np.exp(-4 * np.sin(places @ waves.T + phase).sum(1))),
        "gradient": lambda: np.clip(0.5 + places @ (waves[0] / np.linalg.norm(waves[0])), 0, 1),
        "plain": lambda: np.zeros(len(places)),
    }[kind]()
    return base + share[:, None] * (other - base)


def scanned(kind: str, places: np.ndarray, broken: np.ndarray, seed: list[int], scan: int) -> np.ndarray:
    """Paint on the original surface, clay on the break, and noise and light that each scan has of its own."""
    painted = coat(kind, places, np.random.default_rng(seed))
    clay = np.random.default_rng([*seed, 1]).uniform(0.3, 0.8, 3)
    some = np.random.default_rng([*seed, 2, scan])
    noise, light = 0.06 * some.uniform(), 1 + 0.05 * some.normal()
    levels = np.where(broken[:, None], clay, painted) * light + noise * some.normal(size=painted.shape)
    return levels.clip(0, 1).astype(np.float32)


def examples(number: int, models: FractureModels, coats: int) -> Iterator[list[float]]:
    """Rows of one broken object: whether true, probability by shape, and `contrasts`; kind of paint, and object."""
    generator = torch.Generator().manual_seed(7000 + number)
    solid = make_solid(sorted(SOLIDS)[number % len(SOLIDS)], generator)
    pieces = int(torch.randint(3, 6, (1,), generator=generator))
    puzzle = scatter(fracture(solid, pieces, generator), generator)
    assert puzzle.truth is not None
    truth, fragments = pose_rows(puzzle.truth), prepare(puzzle.fragments, models, number)
    single = [Cluster(fragments, {piece: IDENTITY}) for piece in range(len(fragments))]
    found = [
        (a, b, match)
        for a, b in combinations(range(len(single)), 2)
        for match in match_clusters(single[a], single[b], level_for(single[a], single[b]), Effort(), models, number)
    ]
    wholes = [fragment.pyramid.levels[0] for fragment in fragments]
    standing = [
        Sample(*moved(pose, one.points, one.normals), one.area) for pose, one in zip(truth, wholes, strict=True)
    ]
    breaks = true_breaks(standing, fragments[0].spacing)
    for kind in range(len(PAINTS)):
        for layer in range(coats):
            seed = [number, kind, layer]
            seen = [scanned(PAINTS[kind], one.points, breaks[i], seed, i) for i, one in enumerate(standing)]
            for a, b, match in found:
                sides = [painted(single[piece], match.level, seen[piece]) for piece in (a, b)]
                contrast = contrasts(
                    [seams(match.pose, Sides(sides[0], sides[1], fragments[0].spacing / 2**match.level))[0]]
                )
                if contrast is not None:
                    label = is_true(match, truth[a], truth[b], fragments[a])
                    yield [label, match.probability, contrast[0], *contrast[1][0], kind, number]


def painted(cluster: Cluster, level: int, seen: np.ndarray) -> FractureSide:
    """The side of a single fragment whose surface has these colours at level 0."""
    side, fragment = cluster.side(level), cluster.fragments[cluster.members[0]]
    assert side is not None
    known = rim_colours(side.surface, fragment.pyramid.levels[0], seen, fragment.spacing)
    return side._replace(surface=side.surface._replace(colours=known))


def is_true(match: Match, first: Pose, second: Pose, fragment: Fragment) -> bool:
    """Whether a match puts a fragment where it belongs, to 5 degrees and 3 spacings."""
    off = compose(inverse(match.pose), compose(inverse(second), first))
    middle = fragment.pyramid.levels[0].points.mean(0, keepdims=True)
    turn = np.degrees(np.arccos(np.clip((off[[0, 4, 8]].sum() - 1) / 2, -1, 1)))
    return bool(turn < 5 and np.linalg.norm(transformed(off, middle) - middle) < 3 * fragment.spacing)


def fit(rows: np.ndarray) -> None:
    """Print the constants of least cross entropy, and that of kinds of paint with and without colours."""
    true, _, weight, across, along, points, paint, _ = rows[rows[:, 5] > 0].T

    def entropy(constants: np.ndarray, some: np.ndarray) -> float:
        told = np.clip(
            constants @ np.stack([np.ones_like(along), along, -across]),
            -VERIFICATION.colours.most,
            VERIFICATION.colours.most,
        )
        told = (weight * points / (points + VERIFICATION.colours.points) * told)[some]
        right = true[some] == 1
        shares = np.where(right, 0.5 / max(1, right.sum()), 0.5 / max(1, (~right).sum()))
        return float((shares * np.logaddexp(0, np.where(right, -told, told))).sum())

    # Seams that are plain and alike on both sides are common: what these are worth is counted, and not left to the fit.
    clear, right = (weight > 0.5) & (points >= 20), true == 1
    alike = clear & (along < 0.1) & (across < 0.1)
    shares = [(alike & which).sum() / (clear & which).sum() for which in (right, ~right)]
    even, every = np.log(shares[0] / shares[1]), np.ones(len(true), bool)
    slopes = minimize(
        lambda both: entropy(np.array([even, *both]), every), np.array([3.0, 4.0]), method="Nelder-Mead"
    ).x
    found = np.array([even, *slopes])
    print("EVEN, ALONG, ACROSS =", ", ".join(f"{value:.2f}" for value in found))
    print(f"{int(true.sum())} true and {int((true == 0).sum())} wrong candidates; cross entropy 0.693 without colours")
    for kind, name in enumerate(PAINTS):
        print(f"  {name}: {entropy(found, paint == kind):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=24)
    parser.add_argument("--coats", type=int, default=3, help="of each kind of paint")
    parser.add_argument("--rows", help="write what was measured to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    models, rows = FractureModels.from_pretrained("fracture-matching").eval(), []
    for number in range(options.objects):
        rows += list(examples(number, models, options.coats))
        print(number, len(rows), flush=True)
        if options.rows:
            np.save(options.rows, np.array(rows))
    fit(np.array(rows))


if __name__ == "__main__":
    main()
