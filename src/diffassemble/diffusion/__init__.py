"""The forward and reverse process, and the spaces that poses live in (the paper's section 3.3)."""
