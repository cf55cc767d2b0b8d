"""How well two borders fit: Mates, and the votes that mates cast on each other's poses."""
