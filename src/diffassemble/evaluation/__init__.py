"""How good solvers are; knows only the Solver protocol."""

from diffassemble.evaluation.benchmark import Row, evaluate
from diffassemble.evaluation.comparison import Comparison, compare_accuracy, compare_seconds
from diffassemble.evaluation.interval import bootstrap_interval
from diffassemble.evaluation.metrics import (
    direct_comparison,
    direct_comparison_free,
    neighbour_accuracy,
    perfect,
)
from diffassemble.evaluation.puzzles import benchmark_puzzles
from diffassemble.evaluation.quoted import TABLES, PaperTable
from diffassemble.evaluation.scoring import Score
from diffassemble.evaluation.sweep import Cell, Measured, Sweep, all_cells, run_sweep, warm_up
from diffassemble.evaluation.tables import comparison_table, results_table, write_rows

__all__ = [
    "TABLES",
    "Cell",
    "Comparison",
    "Measured",
    "PaperTable",
    "Row",
    "Score",
    "Sweep",
    "all_cells",
    "benchmark_puzzles",
    "bootstrap_interval",
    "compare_accuracy",
    "compare_seconds",
    "comparison_table",
    "direct_comparison",
    "direct_comparison_free",
    "evaluate",
    "neighbour_accuracy",
    "perfect",
    "results_table",
    "run_sweep",
    "warm_up",
    "write_rows",
]
