"""The graph network that predicts poses (the paper's sections 3.1 to 3.4), and where its weights live."""
