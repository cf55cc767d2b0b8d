"""How good solvers are: metrics, sweeps, tables, figures and reports; knows only the Solver protocol."""
