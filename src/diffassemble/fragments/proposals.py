"""Very many cheap guesses at how two fracture surfaces fit, checked at once.

`propose` brings points at rims onto such points, and pairs of points onto pairs of points, `propose_everywhere` points
onto points, at all turns about their normals. `own` and `other` are `FractureSurface`s, `voxels` and `body` those of
the other, `probe` points of the own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diffassemble.fragments.contact import (
    Touch,
    count_buried,
    fma,
    inverse,
    place,
    refine_some,
    rotation_about,
    touched,
)
from diffassemble.fragments.spatial import inner, kernel


class ProposalLimits(NamedTuple):
    """What proposals must keep to; a tuple, since kernels take no dataclasses. Lengths in spacings of the level."""

    touch: Touch = Touch(2.2, 1.2, -0.5)
    """when a point of the trial touches"""
    settled: Touch = Touch(1.5, 0.6, -0.6)
    """the same after refinement"""
    rim: float = 3.0
    """nearer to the rim than this, break and original surface together make a pose"""
    both_rims: float = 2.5
    """where both points are nearer than this, the original surfaces' normals must agree"""
    length: float = 1.5
    """greatest difference of the lengths of two corresponding pairs"""
    slope: float = 0.3
    """greatest sum of the cosines that the two opposed normals have with their pairs"""
    between: float = 0.35
    """greatest difference of the cosines between the two normals of each pair"""
    original: float = 0.35
    """greatest difference of the cosines that original normals have with their pairs"""
    edge: float = 0.4
    """greatest sum of the two cosines between break and original surface at a rim"""
    flat: float = 0.95
    """beyond this cosine a rim tells no direction"""
    goes_on: float = 0.7
    """least cosine between original surfaces that go on into each other"""
    near_rim: float = 0.6
    """share of the points around a rim correspondence that must touch"""
    near_pair: float = 0.5
    """the same around two correspondences"""
    first: int = 10
    """after so many points of a trial the share that must touch is checked"""
    buried: float = 0.25
    """what a buried probe costs, in touching points"""
    deep: float = 1.5
    """depth, in spacings of the body, from which on a point is buried"""
    apart: float = 4.0
    """poses that bring the middle of the break to places within this distance may count as one"""
    turned: float = 2.97
    """and they do if the trace of the turn between them is greater than this (10 degrees)"""
    refined: float = 1.3
    """radius of the last round of refinement"""


PROPOSAL = ProposalLimits()


@kernel
def propose(
    own, probe, other, voxels, body, keys, candidates, table, company, around, patches, spacing,
    draws, most, shortest, state, limits,
):  # fmt: skip
    """The best poses (h, 12), their scores (h,), and the key of each (h,).

    Key k (a point of `own`) may correspond to the points candidates[k] of `other`. Where both are at a rim, the two
    normals of break and original surface make a pose; elsewhere two correspondences do, drawn from `table`, which
    holds numbers k · len(candidates[k]) + m, likely ones often, and from `company[k]`, other keys not far from key k.
    At least some of the points `around[k]` must touch then; the score is the likeness of touching points among
    `patches[k]`, which reach farther, less buried points: so small contacts count as much as large ones. Of poses that
    are alike only the best is kept: a wrong one that is found often would crowd out a true one that is found once.
    """
    poses, scores, chosen = np.zeros((most, 15)), np.full(most, -np.inf), np.zeros(most, np.int64)
    middle = _middle(own.points)
    width, pose, worst = candidates.shape[1], np.empty(12), -np.inf
    tried = len(keys) * width
    for number in range(tried + draws):
        if number < tried:
            key = number // width
            a, c = keys[key], candidates[key, number % width]
            if own.rim[a] >= limits.rim or other.rim[c] >= limits.rim or not _rim_pose(own, other, a, c, pose, limits):
                continue
            share = limits.near_rim
            second = key
        else:
            state = (state * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
            one, two = table[(state >> 20) % len(table)], table[(state >> 41) % len(table)]
            key = one // width
            second = company[key, (state >> 36) % company.shape[1]]
            if key == second:
                continue
            a, b = keys[key], keys[second]
            c, d = candidates[key, one % width], candidates[second, two % width]
            if not _alike(own, other, a, b, c, d, spacing, shortest, limits):
                continue
            _pose_of(own, other, a, b, c, d, pose, limits.both_rims)
            share = limits.near_pair
        if not _holds_near(pose, own, other, voxels, around[key], around[second], spacing, share, limits.touch):
            continue
        score = likeness(pose, own, other, voxels, patches[key], limits.touch, spacing, worst)
        if score > worst:
            deep = limits.deep * body.spacing
            score -= limits.buried * count_buried(pose, probe, 2, body.voxels, body.points, body.normals, deep)
            worst = _keep(pose, score, key, poses, scores, chosen, middle, limits.apart * spacing, limits.turned)
    found = _found(scores)
    return poses[:found, :12].copy(), scores[:found], chosen[:found]


@kernel
def largest(table, count):
    """The columns of the largest numbers of each row, the largest first, and these numbers."""
    columns, values = np.zeros((len(table), count), np.int64), np.full((len(table), count), -np.inf, np.float32)
    for i in range(len(table)):
        for j in range(table.shape[1]):
            value, k = table[i, j], count - 1
            if value <= values[i, k]:
                continue
            while k > 0 and values[i, k - 1] < value:
                values[i, k], columns[i, k] = values[i, k - 1], columns[i, k - 1]
                k -= 1
            values[i, k], columns[i, k] = value, j
    return columns, values


@kernel
def company(points, shortest, farthest, count, tries, state):
    """For each point some others, by their numbers, that are neither near nor far; or itself where few are found.

    Up to `tries` others are drawn for each that is wanted.
    """
    others = np.empty((len(points), count), np.int64)
    for i in range(len(points)):
        found = 0
        for _ in range(tries * count):
            state = (state * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
            j = (state >> 20) % len(points)
            u, v, w = points[i, 0] - points[j, 0], points[i, 1] - points[j, 1], points[i, 2] - points[j, 2]
            if shortest * shortest < u * u + v * v + w * w < farthest * farthest:
                others[i, found] = j
                found += 1
                if found == count:
                    break
        others[i, found:] = i
    return others


@kernel
def settled(
    poses, parts, own, probe, own_body, other, voxels, other_probe, body, some, spacing, radius, rounds, limits
):  # fmt: skip
    """Poses (c, 12) refined by their parts of the points, and how much what then lies closely looks as it should.

    As a share of some points of all the break, and again as a share of those of the part, less the shares of both
    bodies that lie inside the other.
    """
    found, values = poses.copy(), np.empty(len(poses))
    for n in range(len(poses)):
        pose, part = found[n], parts[n]
        first, last = radius * spacing, limits.refined * spacing
        refine_some(pose, own.points, own.smooth, part, voxels, other.points, other.smooth, first, last, rounds)
        value = likeness(pose, own, other, voxels, some, limits.settled, spacing, -np.inf) / len(some)
        value += likeness(pose, own, other, voxels, part, limits.settled, spacing, -np.inf) / len(part)
        value -= count_buried(pose, probe, 1, body.voxels, body.points, body.normals, body.spacing) / len(probe)
        there = own_body.voxels, own_body.points, own_body.normals, own_body.spacing
        values[n] = value - count_buried(inverse(pose), other_probe, 1, *there) / len(other_probe)
    return found, values


@kernel
def unlike(poses, places, order, trace, distance, most):
    """Numbers of the first poses in an order that are not alike, and how many poses each stands for.

    Poses are alike if the trace of the turn between them is greater than `trace` and their places are near.
    """
    kept, votes, count = np.empty(most, np.int64), np.zeros(most, np.int64), 0
    for i in order:
        like = -1
        for k in range(count):
            j, total, off = kept[k], 0.0, 0.0
            for m in range(9):
                total += poses[i, m] * poses[j, m]
            for m in range(3):
                off += (places[i, m] - places[j, m]) ** 2
            if total > trace and off < distance * distance:
                like = k
                break
        if like >= 0:
            votes[like] += 1
        elif count < most:
            kept[count], votes[count] = i, 1
            count += 1
    return kept[:count], votes[:count]


@kernel
def likeness(pose, own, other, voxels, trial, touch, spacing, least):
    """Over the points that touch, the sum of how much each looks as its counterpart should (0 … 1, squared).

    −∞ as soon as `least` is out of reach.
    """
    total, width = 0.0, own.descriptors.shape[1]
    limits = touch.reach * spacing, touch.plane * spacing, touch.facing
    left = len(trial)
    for i in trial:
        if total + left < least:
            return -np.inf
        left -= 1
        j = touched(pose, own.points[i], own.smooth[i], voxels, other.points, other.smooth, *limits)
        if j < 0:
            continue
        alike = 0.0
        for k in range(width):
            alike += own.counterparts[i, k] * other.descriptors[j, k]
        if alike > 0:
            total += alike * alike
    return total


@inner
def _middle(points):
    """The mean of some points."""
    total = np.zeros(3)
    for i in range(len(points)):
        for k in range(3):
            total[k] += points[i, k]
    return total / len(points)


@inner
def _keep(pose, score, key, poses, scores, chosen, middle, distance, trace):
    """Put a pose in the place of one that is alike, or of the worst, if it is better; the score of the worst then.

    Rows of `poses` are poses and the places to which they bring the middle.
    """
    slot, (x, y, z) = -1, place(pose, middle)
    for k in range(len(scores)):
        if scores[k] == -np.inf:
            break
        u, v, w = poses[k, 12] - x, poses[k, 13] - y, poses[k, 14] - z
        if u * u + v * v + w * w < distance * distance:
            total = 0.0
            for m in range(9):
                total += poses[k, m] * pose[m]
            if total > trace:
                slot = k
                break
    if slot < 0:
        slot = _worst(scores)
    if score > scores[slot]:
        scores[slot], chosen[slot] = score, key
        for k in range(12):
            poses[slot, k] = pose[k]
        poses[slot, 12], poses[slot, 13], poses[slot, 14] = x, y, z
    return scores[_worst(scores)]


@inner
def _worst(scores):
    slot = 0
    for k in range(1, len(scores)):
        if scores[k] < scores[slot]:
            slot = k
    return slot


@inner
def _found(scores):
    """How many poses were put down, which lie first."""
    found = 0
    while found < len(scores) and scores[found] > -np.inf:
        found += 1
    return found


@inner
def _alike(own, other, a, b, c, d, spacing, shortest, limits):
    """Whether two points of one break lie to each other as two points of the other do."""
    here, there = own.points, other.points
    ux, uy, uz = here[b, 0] - here[a, 0], here[b, 1] - here[a, 1], here[b, 2] - here[a, 2]
    vx, vy, vz = there[d, 0] - there[c, 0], there[d, 1] - there[c, 1], there[d, 2] - there[c, 2]
    length, facing = np.sqrt(ux * ux + uy * uy + uz * uz), np.sqrt(vx * vx + vy * vy + vz * vz)
    if length < shortest or facing < shortest or abs(length - facing) > limits.length * spacing:
        return False
    n, m, p, q = own.smooth[a], own.smooth[b], other.smooth[c], other.smooth[d]
    one = (n[0] * ux + n[1] * uy + n[2] * uz) / length
    if abs(one + (p[0] * vx + p[1] * vy + p[2] * vz) / facing) > limits.slope:
        return False
    one = (m[0] * ux + m[1] * uy + m[2] * uz) / length
    if abs(one + (q[0] * vx + q[1] * vy + q[2] * vz) / facing) > limits.slope:
        return False
    one = n[0] * m[0] + n[1] * m[1] + n[2] * m[2]
    if abs(one - (p[0] * q[0] + p[1] * q[1] + p[2] * q[2])) > limits.between:
        return False
    for i, j in ((a, c), (b, d)):
        if own.rim[i] < limits.both_rims and other.rim[j] < limits.both_rims:
            o, r = own.original[i], other.original[j]
            one = (o[0] * ux + o[1] * uy + o[2] * uz) / length
            if abs(one - (r[0] * vx + r[1] * vy + r[2] * vz) / facing) > limits.original:
                return False
    return True


@inner
def _rim_pose(own, other, a, c, pose, limits):
    """The pose that brings a point at a rim onto another, breaks facing each other and the original surfaces going on.

    False where the normals stand to each other in too different a way, or hardly tell a direction.
    """
    n, o, m, r = own.smooth[a], own.original[a], other.smooth[c], other.original[c]
    here, there = n[0] * o[0] + n[1] * o[1] + n[2] * o[2], m[0] * r[0] + m[1] * r[1] + m[2] * r[2]
    if abs(here + there) > limits.edge or abs(here) > limits.flat or abs(there) > limits.flat:
        return False
    h, t = 1 / np.sqrt(1 - here * here), 1 / np.sqrt(1 - there * there)
    ux, uy, uz = h * (o[0] - here * n[0]), h * (o[1] - here * n[1]), h * (o[2] - here * n[2])
    vx, vy, vz = t * (r[0] - there * m[0]), t * (r[1] - there * m[1]), t * (r[2] - there * m[2])
    u, side = (ux, uy, uz), (n[1] * uz - n[2] * uy, n[2] * ux - n[0] * uz, n[0] * uy - n[1] * ux)
    v, across = (vx, vy, vz), (m[2] * vy - m[1] * vz, m[0] * vz - m[2] * vx, m[1] * vx - m[0] * vy)
    for i in range(3):
        moved = 0.0
        for j in range(3):
            total = v[i] * u[j] + across[i] * side[j] - m[i] * n[j]
            pose[3 * i + j] = total
            moved += total * own.points[a, j]
        pose[9 + i] = other.points[c, i] - moved
    return True


@inner
def _pose_of(own, other, a, b, c, d, pose, both_rims):
    """The pose that brings two points onto two others, turned about their axis so that normals oppose each other."""
    u, v = np.empty(3), np.empty(3)
    for k in range(3):
        u[k] = own.points[b, k] - own.points[a, k]
        v[k] = other.points[d, k] - other.points[c, k]
    length, width = np.sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]), np.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    for k in range(3):
        u[k] /= length
        v[k] /= width
    turn = _shortest_turn(u[0], u[1], u[2], v[0], v[1], v[2], -0.999999)
    cosine, sine = 0.0, 0.0
    for i, j in ((a, c), (b, d)):
        extra, extra2 = _spin(turn, v, own.smooth[i], other.smooth[j], -1.0)
        cosine, sine = cosine + extra, sine + extra2
        if own.rim[i] < both_rims and other.rim[j] < both_rims:
            extra, extra2 = _spin(turn, v, own.original[i], other.original[j], 1.0)
            cosine, sine = cosine + extra, sine + extra2
    length = max(np.sqrt(cosine * cosine + sine * sine), 1e-9)
    spin = rotation_about(v[0], v[1], v[2], cosine / length, sine / length)
    for k in range(3):
        p, q, r = spin[k]
        moved = 0.0
        for m in range(3):
            total = fma(r, turn[2, m], fma(q, turn[1, m], p * turn[0, m]))
            pose[3 * k + m] = total
            moved += total * (own.points[a, m] + own.points[b, m]) / 2
        pose[9 + k] = (other.points[c, k] + other.points[d, k]) / 2 - moved


@inner
def _shortest_turn(ux, uy, uz, vx, vy, vz, opposed):
    """The rotation that brings one unit vector onto another the shortest way; below `opposed`, a half turn."""
    turn, c = np.zeros((3, 3)), ux * vx + uy * vy + uz * vz
    if c < opposed:
        x, y, z = (1.0, 0.0, 0.0) if abs(ux) < 0.9 else (0.0, 1.0, 0.0)
        along = x * ux + y * uy + z * uz
        x, y, z = x - along * ux, y - along * uy, z - along * uz
        length = np.sqrt(x * x + y * y + z * z)
        axis = (x / length, y / length, z / length)
        for i in range(3):
            for j in range(3):
                turn[i, j] = 2 * axis[i] * axis[j] - (1.0 if i == j else 0.0)
        return turn
    x, y, z = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    cross = np.zeros((3, 3))
    cross[0, 1], cross[0, 2], cross[1, 0] = -z, y, z
    cross[1, 2], cross[2, 0], cross[2, 1] = -x, -y, x
    for i in range(3):
        for j in range(3):
            square = fma(cross[i, 2], cross[2, j], fma(cross[i, 1], cross[1, j], cross[i, 0] * cross[0, j]))
            turn[i, j] = (1.0 if i == j else 0.0) + cross[i, j] + square / (1 + c)
    return turn


@inner
def _spin(turn, axis, given, wanted, sign):
    """What a pair of directions says about the angle around the axis, as cosine and sine."""
    x = turn[0, 0] * given[0] + turn[0, 1] * given[1] + turn[0, 2] * given[2]
    y = turn[1, 0] * given[0] + turn[1, 1] * given[1] + turn[1, 2] * given[2]
    z = turn[2, 0] * given[0] + turn[2, 1] * given[1] + turn[2, 2] * given[2]
    p, q, r = sign * wanted[0], sign * wanted[1], sign * wanted[2]
    along = x * axis[0] + y * axis[1] + z * axis[2]
    across = p * axis[0] + q * axis[1] + r * axis[2]
    cosine = x * p + y * q + z * r - along * across
    sine = axis[0] * (y * r - z * q) + axis[1] * (z * p - x * r) + axis[2] * (x * q - y * p)
    return cosine, sine


@inner
def _holds_near(pose, own, other, voxels, near_first, near_second, spacing, share, touch):
    """Whether at least a share of the points around both correspondences touch."""
    total, missed = len(near_first) + len(near_second), 0
    limits = touch.reach * spacing, touch.plane * spacing, touch.facing
    for k in range(total):
        i = near_first[k // 2] if k % 2 == 0 else near_second[k // 2]
        if touched(pose, own.points[i], own.smooth[i], voxels, other.points, other.smooth, *limits) < 0:
            missed += 1
            if missed > (1 - share) * total:
                return False
    return True


@kernel
def propose_everywhere(own, probe, other, voxels, body, keys, trial, places, spacing, turns, most, share, cost, limits):
    """The best poses (h, 12) of `own` with a key on a place of `other`, their scores, and the point of each.

    The score is matched points less `cost` for every third that is buried.

    At least `share` of the trial must touch. Where both points are at a rim, only turns that make the original surfaces
    go on into each other are tried.
    """
    poses, scores, chosen = np.zeros((most, 15)), np.full(most, -np.inf), np.zeros(most, np.int64)
    pose, middle = np.empty(12), _middle(own.points)
    least, deep = share * len(trial), limits.deep * body.spacing
    for a in keys:
        for b in places:
            n, m = own.smooth[a], other.smooth[b]
            base = _shortest_turn(n[0], n[1], n[2], -m[0], -m[1], -m[2], -0.99999)
            for number in range(turns):
                angle = 2 * np.pi * number / turns
                _spun(base, other.smooth[b], angle, own.points[a], other.points[b], pose)
                if not _goes_on(own, other, a, b, pose, limits):
                    continue
                score = float(_count(pose, own, other, voxels, trial, spacing, share, least, limits))
                if score < least:
                    continue
                score -= cost * count_buried(pose, probe, 3, body.voxels, body.points, body.normals, deep)
                # Once there are as many as wanted, only what is better than the worst of the best counts.
                kept = _keep(pose, score, a, poses, scores, chosen, middle, limits.apart * spacing, limits.turned)
                least = max(least, kept + 0.5)
    found = _found(scores)
    return poses[:found, :12].copy(), scores[:found], chosen[:found]


@inner
def _spun(base, axis, angle, point, place, pose):
    """The rotation turned about an axis, with the point brought onto its place."""
    spin = rotation_about(axis[0], axis[1], axis[2], np.cos(angle), np.sin(angle))
    for i in range(3):
        moved = 0.0
        for j in range(3):
            total = spin[i][0] * base[0, j] + spin[i][1] * base[1, j] + spin[i][2] * base[2, j]
            pose[3 * i + j] = total
            moved += total * point[j]
        pose[9 + i] = place[i] - moved


@inner
def _goes_on(own, other, a, b, pose, limits):
    """Whether the original surfaces go on into each other, as far as both are known."""
    if own.rim[a] > limits.both_rims or other.rim[b] > limits.both_rims:
        return True
    o, r = own.original[a], other.original[b]
    total = 0.0
    for i in range(3):
        total += r[i] * (pose[3 * i] * o[0] + pose[3 * i + 1] * o[1] + pose[3 * i + 2] * o[2])
    return total > limits.goes_on


@inner
def _count(pose, own, other, voxels, trial, spacing, share, least, limits):
    """Points of the trial that touch; given up early where the first ones hardly do or `least` is out of reach."""
    missed, touch = 0, (limits.touch.reach * spacing, limits.touch.plane * spacing, limits.touch.facing)
    for k in range(len(trial)):
        i = trial[k]
        if touched(pose, own.points[i], own.smooth[i], voxels, other.points, other.smooth, *touch) >= 0:
            continue
        missed += 1
        if len(trial) - missed < least or (k < limits.first and missed > (1 - share) * limits.first):
            return 0
    return len(trial) - missed
