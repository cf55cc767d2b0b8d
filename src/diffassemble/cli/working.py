"""What the verbs that solve have in common: reading with an unknown grid, a progress bar, a summary."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from diffassemble.evaluation import metrics
from diffassemble.files import knows_board, read_pieces, read_puzzle
from diffassemble.puzzle import Assembly, Board, Puzzle, Solver
from diffassemble.solvers import assemble, bundled_uprighter, choose_board


def load_puzzle(path: Path, board: Board | None, solver: Solver, seed: int) -> Puzzle:
    """Read what the user gave; a folder of pictures without a grid gets the one its borders ask for."""
    if board is not None or not path.is_dir() or knows_board(path):
        return read_puzzle(path, board)
    pieces, names = read_pieces(path)
    board = choose_board(pieces, solver, seed, bundled_uprighter())
    print(f"grid not given: {board.rows}x{board.cols} fits the {len(pieces)} pieces best")
    return Puzzle(pieces, board, names)


def assembled(puzzle: Puzzle, solver: Solver, seed: int) -> Assembly:
    """Solve under a progress bar on the error stream, if that is a terminal."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        job = progress.add_task("solving", total=1.0)
        return assemble(puzzle, solver, seed, lambda step: progress.update(job, completed=step.done))


def summary(assembly: Assembly) -> str:
    """One line on what was done, with the score if the truth is known."""
    puzzle = assembly.puzzle
    sure = int((assembly.confidence >= 0.5).sum())
    text = f"placed {len(puzzle)} pieces in {assembly.seconds:.1f} s; {sure} with a confidence of one half or more"
    if puzzle.truth is None:
        return text
    answer, truth = puzzle.board.snap(assembly.poses), puzzle.board.snap(puzzle.truth)
    right = metrics.direct_comparison(puzzle.board, *answer, *truth)
    free = metrics.direct_comparison_free(puzzle.board, *answer, *truth)
    return f"{text}\nscore: {right:.1f} % of the pieces right, {free:.1f} % orientation free"
