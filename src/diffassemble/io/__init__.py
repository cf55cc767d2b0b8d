"""Files in and out: what an input is, puzzle folders, answers, pictures, meshes, photographs, archives."""
