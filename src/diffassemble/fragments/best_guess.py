"""Where a piece may belong that is not part of the answer: at its best match, or where the break is still open.

Open parts of the break are told apart, and what is left over is turned in each of them until it fits best. Of pieces
under 2 % of the surface, each left out by itself (151 of 80 training fractures), 57 % so come to their place, and 9 %
in the middle of all that is open.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int64
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from diffassemble.core import Poses
from diffassemble.fragments.assembly_state import AssemblyState
from diffassemble.fragments.clusters import Cluster, FractureSide
from diffassemble.fragments.contact import IDENTITY, Pose, compose, inverse, pose_rows, poses_of, refine
from diffassemble.fragments.pair_search import rating

# The least probability of a match that is believed more than what seems to fit into an open part of the break.
_BELIEVED = 0.1
# Points of the break are of one part if they lie so close, in spacings; smaller parts are not looked at, and of the
# others those that are most like the piece's break in size.
_CLOSE, _FEWEST, _PARTS = 2.0, 5, 30
# A piece is turned in so many steps, settled by so many points, and takes a part if that is no larger than so many
# times its own break.
_TURNS, _SOME, _TAKES = 12, 300, 2.0


def best_guess(state: AssemblyState, laid: Poses) -> Poses:
    """What is laid aside, a cluster each, the largest first, where it fits best."""
    rows = pose_rows(laid)
    main = next(cluster for cluster in state.clusters if state.anchor in cluster.members)
    stands = compose(rows[state.anchor], inverse(main.poses[state.anchor]))
    taken: set[int] = set()
    for cluster in state.ordered:
        if cluster is main:
            continue
        known = [*state.matches.get((cluster, main), [])]
        known += [match.reversed() for match in state.matches.get((main, cluster), [])]
        best = max(known, key=lambda match: match.probability, default=None)
        place = best.pose if best is not None and best.probability >= _BELIEVED else None
        level = min(1, cluster.finest, main.finest)
        own, other = cluster.side(level), main.side(level)
        if place is None and own is not None and other is not None and not state.late:
            place = in_open_break(own, other, main.fragments[0].spacing / 2**level, taken)
        if place is None:
            place = best.pose if best is not None else _in_the_middle(cluster, main)
        for piece in cluster.members:
            rows[piece] = compose(compose(stands, place), cluster.poses[piece])
    return poses_of(rows)


def in_open_break(own: FractureSide, other: FractureSide, spacing: float, taken: set[int]) -> Pose | None:
    """Where a side fits best of all open parts of another's break that are not taken; it then takes one."""
    parts = [(number, part) for number, part in enumerate(open_parts(other, spacing)) if number not in taken]
    parts = sorted(parts, key=lambda entry: abs(np.log(len(entry[1]) / len(own.points))))[:_PARTS]
    step = max(1, len(own.points) // _SOME)
    some = np.ascontiguousarray(own.points[::step]), np.ascontiguousarray(own.smooth[::step])
    found: tuple[float, int, Pose] | None = None
    for number, part in parts:
        for pose in _turned_towards(own, other, part):
            for first, last in ((4.0, 2.0), (2.0, 1.0)):
                pose = refine(pose, *some, other.target, first * spacing, last * spacing, 5)
            worth = rating(pose, own, other, spacing)
            if found is None or worth > found[0]:
                found = worth, number, pose
    if found is None:
        return None
    if len(dict(parts)[found[1]]) <= _TAKES * len(own.points):
        taken.add(found[1])
    return found[2]


def open_parts(side: FractureSide, spacing: float) -> list[Int64[np.ndarray, "_"]]:
    """Points of a break, those in each part of it that hangs together."""
    close = cKDTree(side.points).query_pairs(_CLOSE * spacing, output_type="ndarray")
    links = coo_matrix((np.ones(len(close)), close.T), (len(side.points),) * 2)
    label = connected_components(links, directed=False)[1]
    parts = np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])
    return [part for part in parts if len(part) >= _FEWEST]


def _turned_towards(
    own: FractureSide, other: FractureSide, part: Int64[np.ndarray, "_"]
) -> Float64[np.ndarray, "t 12"]:
    """Poses that bring middle to middle and let both breaks face each other, turned about that direction."""
    towards, middle = -other.smooth[part].mean(0).astype(np.float64), own.points.mean(0)
    towards /= max(float(np.linalg.norm(towards)), 1e-9)
    facing, _ = Rotation.align_vectors(towards[None], own.smooth.mean(0)[None])
    turns = Rotation.from_rotvec(2 * np.pi * np.arange(_TURNS)[:, None] / _TURNS * towards)
    matrices = (turns * facing).as_matrix()
    shifts = other.points[part].mean(0) - matrices @ middle
    return np.concatenate([matrices.reshape(-1, 9), shifts], 1)


def _in_the_middle(cluster: Cluster, main: Cluster) -> Pose:
    """With its middle in that of all that is open."""
    side = main.side(0)
    target = main.body.points if side is None else side.points
    return np.concatenate([IDENTITY[:9], target.mean(0) - cluster.body.points.mean(0)])
