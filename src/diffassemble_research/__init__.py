"""Research beside the program: the paper's baselines, ablations and tables, with its quoted figures.

The program never imports this package; it finds `presets`, `tasks`, `networks`, `parts` and `verbs` through the entry
point group `diffassemble.extensions`.
"""
