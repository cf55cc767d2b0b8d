"""How two fracture faces fit, station by station: sampling, where is the break, descriptors, search, verification."""
