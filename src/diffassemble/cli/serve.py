"""`diffassemble serve`: the workbench in the browser."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from diffassemble.cli.arguments import Grid


def serve(
    pieces: Annotated[Positional[Path | None], arg(metavar="DIR|ZIP")] = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    grid: Grid = None,
) -> None:
    """Open the workbench: upload pieces, watch them come together, correct, and download the result.

    Everything stays on this computer. The printed address contains a token, without which nothing is served.

    Args:
        pieces: A puzzle folder, a folder or zip file of pictures or meshes to begin with. Default: the page asks.
        host: Where to listen. By default only this computer can reach the page; 0.0.0.0 admits others that have the
            token.
        port: The port; 0 finds a free one.
    """
    from diffassemble.io.documents import parse_grid
    from diffassemble.io.puzzles import open_input

    board = None if grid is None else parse_grid(grid)
    opened = None if pieces is None else open_input(pieces, board, say=print)
    from diffassemble.web.server import First, Workbench

    first = None if opened is None or pieces is None else First(pieces.resolve().name, opened)
    # A signal that ends the program ends all work as well.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    workbench = Workbench(first, host, port)
    print(f"the workbench is at {workbench.address}", flush=True)
    reach = "nothing that you upload leaves this machine"
    if not workbench.local:
        reach = "others in your network can open it, if they have this address with its token"
    print(f"{reach}; Ctrl-C ends it", flush=True)
    try:
        while True:
            time.sleep(3600)
    finally:
        workbench.stop()
