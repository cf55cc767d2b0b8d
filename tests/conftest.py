"""Shapes and types are checked at run time in all tests; one thread keeps small tensors fast."""

import torch
from jaxtyping import install_import_hook

install_import_hook("diffassemble", "beartype.beartype")
torch.set_num_threads(1)
