"""The graph network that predicts poses (the paper's sections 3.1 to 3.4), and where its weights live."""

import warnings

# What is used here, products of sparse and dense matrices, has long been stable.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
