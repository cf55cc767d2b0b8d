"""What the page says about an answer."""

from __future__ import annotations

from diffassemble.core import Assembly, FragmentPieces
from diffassemble.evaluation import metrics as fragment_metrics


def summary(assembly: Assembly) -> str:
    """How many pieces are right, if the truth is known, else how many are sure."""
    puzzle, count = assembly.puzzle, len(assembly.puzzle)
    sure = int((assembly.confidence >= 0.5).sum())
    doubt = f"{sure} of {count} pieces with a confidence of one half or more"
    if puzzle.truth is None:
        return doubt
    right, free, word = (_objects if isinstance(puzzle.pieces, FragmentPieces) else _pictures)(assembly)
    turned = f" ({free} {word})" if free > right else ""
    return f"**{right} of {count} pieces right**{turned}; {doubt}"


def _pictures(assembly: Assembly) -> tuple[int, int, str]:
    board, truth = assembly.puzzle.board, assembly.puzzle.truth
    assert truth is not None
    (cells, turns), (true_cells, true_turns) = board.snap(assembly.poses), board.snap(truth)
    counts = []
    for by in board.fitting_turns():
        _, turned_cells, turned_turns = board.turned(cells, turns, by)
        counts.append(int(((turned_cells == true_cells) & (turned_turns == true_turns)).sum()))
    return counts[0], max(counts), "once the whole is turned"


def _objects(assembly: Assembly) -> tuple[int, int, str]:
    fragments, truth = assembly.puzzle.fragments, assembly.puzzle.truth
    assert truth is not None
    largest = int(fragment_metrics.piece_sizes(fragments).argmax())
    counts = []
    for poses in (assembly.poses, fragment_metrics.anchored(assembly.poses, truth, largest)):
        chamfer = fragment_metrics.piece_chamfer(fragments.points, poses, truth)
        counts.append(int(fragment_metrics.right_pieces(chamfer).sum()))
    return counts[0], counts[1], "as seen from the largest"


def time_left(done: float, seconds: float) -> str:
    """How long it may still take, in words."""
    if done <= 0.02:
        return "working"
    left = seconds / done * (1 - done)
    return f"about {left:.0f} s left" if left < 100 else f"about {left / 60:.0f} min left"
