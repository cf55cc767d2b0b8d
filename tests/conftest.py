"""Shapes and types are checked at run time in all tests; one thread keeps small tensors fast.

Several workers may share the tests out, file by file; those in a browser stay together, since they share one page.
"""

from __future__ import annotations

import ctypes
import os
import pkgutil
import resource
import runpy
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import skimage.data
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

# The hook looks for bytecode of its own, also of what its modules import; so the large libraries come before it.
for library in (
    "lightning_fabric",
    "matplotlib.pyplot",
    "numba",
    "roma",
    "torch_geometric.nn",
    "nicegui",
):
    import_module(library)
install_import_hook("diffassemble", "beartype.beartype")
import diffassemble  # noqa: E402

torch.set_num_threads(1)
# A machine that does other things too may take its time.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


if TYPE_CHECKING:
    from diffassemble.core import Puzzle


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one file have fixtures in common, and so do all in the browser: one worker takes them, those last."""
    in_browser = {item for item in items if "workbench" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: item in in_browser)
    for item in items:
        item.add_marker(pytest.mark.xdist_group("browser" if item in in_browser else str(item.path)))


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str


def _give_up_rights() -> None:
    """Root without its powers is bound by the rights of files like everybody else."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)())


def _child(work: Callable[[], int], out: Path, err: Path) -> None:
    """Do the work and leave the process with its exit code."""
    code = 1
    try:
        torch.set_num_threads(1)
        sys.stdout, sys.stderr = out.open("w"), err.open("w")
        code = work()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@pytest.fixture(scope="session")
def everything_imported() -> None:
    """All modules are loaded once, not by every child process."""
    for module in pkgutil.walk_packages(diffassemble.__path__, "diffassemble."):
        if not module.name.endswith("__main__"):
            import_module(module.name)


@pytest.fixture
def fork(
    everything_imported: None, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Callable[[], int]], tuple[int, Callable[[], Outcome]]]:
    """Begin work in a child process, without loading everything anew: its id, and how to wait for it."""

    def begin(work: Callable[[], int]) -> tuple[int, Callable[[], Outcome]]:
        folder = tmp_path_factory.mktemp("streams")
        out, err = folder / "out", folder / "err"
        process = os.fork()
        if process == 0:
            _child(work, out, err)

        def wait() -> Outcome:
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            said, told = (path.read_text() if path.exists() else "" for path in (out, err))
            # Whoever comes first on a machine compiles, and is told so.
            return Outcome(code, said, told.replace("compiling the search, once; about 10 s\n", ""))

        return process, wait

    return begin


@pytest.fixture
def start(fork: Callable[..., tuple[int, Callable[[], Outcome]]]) -> Callable[..., tuple[int, Callable[[], Outcome]]]:
    """Start `diffassemble` in a child process."""

    def begin(*argv: str | Path, prepare: Callable[[], None] = lambda: None) -> tuple[int, Callable[[], Outcome]]:
        def work() -> int:
            prepare()
            from diffassemble.cli.main import main

            return main([str(word) for word in argv])

        return fork(work)

    return begin


@pytest.fixture
def script(fork: Callable[..., tuple[int, Callable[[], Outcome]]]) -> Callable[[Path, Path], Outcome]:
    """Run a Python script within a folder, in a child process."""

    def run(path: Path, folder: Path) -> Outcome:
        def work() -> int:
            os.chdir(folder)
            sys.argv = [str(path)]
            runpy.run_path(str(path), run_name="__main__")
            return 0

        return fork(work)[1]()

    return run


@pytest.fixture
def command(start: Callable[..., tuple[int, Callable[[], Outcome]]]) -> Callable[..., Outcome]:
    """Run `diffassemble` in a child process; without `rights`, or with a limit to what a file may hold."""

    def run(*argv: str | Path, rights: bool = True, largest_file: int | None = None) -> Outcome:
        def prepare() -> None:
            if not rights and os.geteuid() == 0:
                _give_up_rights()
            if largest_file is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

        return start(*argv, prepare=prepare)[1]()

    return run


@pytest.fixture(scope="session")
def cut() -> Callable[..., Puzzle]:
    """Cut one of the photos that scikit-image brings with it."""
    from diffassemble.core import Board
    from diffassemble.squares.cut import cut_picture

    def make(rows: int, cols: int, missing: float = 0.0, seed: int = 0, name: str = "coffee", size: int = 16) -> Puzzle:
        picture = torch.from_numpy(getattr(skimage.data, name)()).movedim(-1, 0).float() / 255
        generator = torch.Generator().manual_seed(seed)
        return cut_picture(picture, Board(rows, cols), generator, size=size, missing=missing)

    return make


@pytest.fixture(scope="session")
def picture_folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two folders of six small soft pictures each; nobody may write there."""
    from diffassemble.io.pictures import write_picture

    root = tmp_path_factory.mktemp("pictures")
    for number in range(12):
        generator = torch.Generator().manual_seed(number)
        coarse = torch.rand(1, 3, 6, 8, generator=generator)
        picture = torch.nn.functional.interpolate(coarse, (48, 64), mode="bicubic")[0].clamp(0, 1)
        write_picture(picture, root / "ab"[number // 6] / f"{number % 6}.png")
    return root / "a", root / "b"


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder with random weights; nobody may write there."""
    from diffassemble.network.config import ModelConfig
    from diffassemble.network.denoiser import Denoiser

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    config = ModelConfig(head="cells", features=8, width=32, layers=1, heads=2, pose_width=16, time_width=8)
    Denoiser(config).save_pretrained(folder)
    return folder


@pytest.fixture
def bfloat16() -> None:
    """For tests that compute in bfloat16, which ends the process on some machines."""
    from diffassemble.training.precision import bfloat16

    if reason := bfloat16()[1]:
        pytest.skip(reason)
