"""Which piece talks to which."""

from diffassemble.graph.edges import complete_edges, drop_edges, mate_edges
from diffassemble.graph.expander import check_degree, expander_edges, neighbours_of, regular_expander
from diffassemble.graph.features import DenseFeatures, ListedFeatures, PairFeatures
from diffassemble.graph.layout import DenseGraph, EdgeGraph, Graph, edge_graph
from diffassemble.graph.products import common, summed

__all__ = [
    "DenseFeatures",
    "DenseGraph",
    "EdgeGraph",
    "Graph",
    "ListedFeatures",
    "PairFeatures",
    "check_degree",
    "common",
    "complete_edges",
    "drop_edges",
    "edge_graph",
    "expander_edges",
    "mate_edges",
    "neighbours_of",
    "regular_expander",
    "summed",
]
