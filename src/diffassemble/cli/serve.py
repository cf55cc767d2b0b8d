"""`diffassemble serve`: the workbench in the browser."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import tyro


def serve(
    pieces: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="DIR|ZIP")] = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    grid: Annotated[str | None, tyro.conf.arg(metavar="RxC")] = None,
) -> None:
    """Open the workbench: upload pieces, watch them come together, correct, and download the result.

    Everything stays on this computer.

    Args:
        pieces: A puzzle folder, a folder or zip file of pictures or meshes to begin with. Default: a sample picture.
        host: Where to listen. Default: only this computer can reach the page.
        port: The port; the next free one if it is taken.
        grid: Rows and columns of the pieces, such as 6x6; found out if not given.
    """
    from diffassemble.core import Assembly, Puzzle
    from diffassemble.files.documents import parse_grid
    from diffassemble.files.puzzles import open_input
    from diffassemble.web.server import Workbench, example_answer

    board = None if grid is None else parse_grid(grid)
    first: Puzzle | Assembly = example_answer() if pieces is None else open_input(pieces, board, say=print)
    # Whoever ends it by a signal leaves no temporary folders behind either.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    workbench = Workbench(first, host, port)
    print(f"the workbench is at {workbench.address}", flush=True)
    print("nothing that you upload leaves this machine; Ctrl-C ends it", flush=True)
    try:
        workbench.server.sleep_forever()
    finally:
        workbench.stop()
