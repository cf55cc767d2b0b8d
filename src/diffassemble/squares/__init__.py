"""Equal square pieces on a grid: cut, photographed, compared by their edges, and put together."""
