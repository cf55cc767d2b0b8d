"""Which piece talks to which."""

from diffassemble.graph.edges import complete_edges, drop_edges
from diffassemble.graph.features import DenseFeatures, ListedFeatures, PairFeatures
from diffassemble.graph.layout import DenseGraph, EdgeGraph, Graph, edge_graph

__all__ = [
    "DenseFeatures",
    "DenseGraph",
    "EdgeGraph",
    "Graph",
    "ListedFeatures",
    "PairFeatures",
    "complete_edges",
    "drop_edges",
    "edge_graph",
]
