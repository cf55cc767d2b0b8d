"""What holds for everything that numba compiles."""

from __future__ import annotations

import importlib
import pkgutil

from numba.core.dispatcher import Dispatcher

import diffassemble


def test_no_kernel_adds_up_in_an_order_that_the_compiler_chooses() -> None:
    """What a compiler makes of fastmath differs with what it compiled before, and so did last digits of answers."""
    names = [module.name for module in pkgutil.walk_packages(diffassemble.__path__, "diffassemble.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    kernels = [one for module in modules for one in vars(module).values() if isinstance(one, Dispatcher)]
    assert len(kernels) > 50
    assert not [one for one in kernels if one.targetoptions.get("fastmath") or one.targetoptions.get("parallel")]
