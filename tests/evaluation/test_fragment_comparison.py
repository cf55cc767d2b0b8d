"""Ours and quoted figures meet by method, share and anchor."""

from __future__ import annotations

from collections.abc import Callable

from diffassemble.evaluation.fragment_benchmark import FragmentRow
from diffassemble.evaluation.fragment_comparison import compare_fragments
from diffassemble.evaluation.fragment_quoted import FRAGMENT_TABLES


def test_our_rows_first_then_what_is_only_quoted(fragment_row: Callable[..., FragmentRow]) -> None:
    rows = [fragment_row("identity", 83.0, 17.0, 4.0), fragment_row("diffusion", 70.0, 14.0, 30.0)]
    (found,) = compare_fragments(FRAGMENT_TABLES["2"], rows)
    assert [line.method for line in found.lines] == [
        *("identity", "diffusion", "plain", "invariant", "six-d", "no-chamfer", "no-diffusion", "gcn")
    ]
    first, second, third = found.lines[:3]
    assert (first.ours, first.quoted) == (rows[0], None)
    assert second.ours is rows[1]
    assert second.quoted is not None
    assert second.quoted.part_accuracy == 27.48
    assert third.ours is None
    assert (found.data, found.anchor, found.missing) == ("bad/everyday/val", "none", 0.0)


def test_one_comparison_for_each_share_and_anchor(fragment_row: Callable[..., FragmentRow]) -> None:
    rows = [
        fragment_row("lstm", 80.0, 15.0, 20.0, missing=missing, anchor=anchor)
        for missing in (0.0, 0.3)
        for anchor in ("none", "largest")
    ]
    found = compare_fragments(FRAGMENT_TABLES["missing-3d"], rows)
    assert [(one.missing, one.anchor) for one in found] == [
        *((0.0, "none"), (0.0, "largest"), (0.3, "none"), (0.3, "largest"))
    ]
    quoted = [one.lines[0].quoted for one in found]
    assert [entry.part_accuracy for entry in quoted if entry] == [4.78, 4.78, 4.36, 4.36]
