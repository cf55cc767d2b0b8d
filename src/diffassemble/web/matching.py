"""Likely matches of flat pieces, which draw a piece to its neighbour while it is dragged."""

from __future__ import annotations

import math

from diffassemble.core import Matches, Poses, Puzzle
from diffassemble.core.poses import angles
from diffassemble.kinds import find_matches
from diffassemble.web.jobs import Send

# Matches less probable than this draw no piece, and no more than so many are told.
_LEAST, _MOST = 0.3, 20_000

Row = tuple[int, int, float, float, float, float]
"""If the second piece stands at the origin, the first stands at x, y, turned by degrees; and how probable that is."""


def send_matches(send: Send, puzzle: Puzzle) -> None:
    """Find the matches of flat pieces that lie on no board, and send them."""
    send("matches", find_matches(puzzle))


def rows(matches: Matches) -> list[Row]:
    """Likely matches both ways round, the most probable first."""
    order = matches.probability.argsort(descending=True)[: _MOST // 2]
    kept = matches[order[matches.probability[order] >= _LEAST]]
    both = ((kept.first, kept.second, kept.pose), (kept.second, kept.first, kept.pose.inverse()))
    return [row for first, second, relative in both for row in _rows(first.tolist(), second.tolist(), relative, kept)]


def _rows(first: list[int], second: list[int], relative: Poses, matches: Matches) -> list[Row]:
    places, turns, sure = relative.translation.tolist(), angles(relative).tolist(), matches.probability.tolist()
    return [
        (one, other, round(x, 2), round(y, 2), round(math.degrees(turn), 2), round(weight, 3))
        for one, other, (x, y), turn, weight in zip(first, second, places, turns, sure, strict=True)
    ]
