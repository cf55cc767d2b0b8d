"""How good solvers are; knows only the Solver protocol."""

from diffassemble.evaluation.benchmark import Row, Score, evaluate
from diffassemble.evaluation.interval import bootstrap_interval
from diffassemble.evaluation.metrics import (
    direct_comparison,
    direct_comparison_free,
    neighbour_accuracy,
    perfect,
)
from diffassemble.evaluation.puzzles import benchmark_puzzles
from diffassemble.evaluation.sweep import Measured, Sweep, run_sweep
from diffassemble.evaluation.tables import results_table, write_rows

__all__ = [
    "Measured",
    "Row",
    "Score",
    "Sweep",
    "benchmark_puzzles",
    "bootstrap_interval",
    "direct_comparison",
    "direct_comparison_free",
    "evaluate",
    "neighbour_accuracy",
    "perfect",
    "results_table",
    "run_sweep",
    "write_rows",
]
