"""Write the reference of all public functions, from their docstrings, to docs/api."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pdoc

import diffassemble

OUT = Path(__file__).parent / "api"


def main() -> None:
    """The front door first, then room by room; the command line explains itself by --help."""
    for name in diffassemble.__all__:
        # Public names are loaded on first use; the reference must find them in place.
        setattr(diffassemble, name, getattr(diffassemble, name))
    found = [module.name for module in walk_packages(diffassemble.__path__, "diffassemble.")]
    rooms = [name for name in found if not name.startswith("diffassemble.cli") and not name.endswith("__main__")]
    for name in ("diffassemble", *rooms):
        _list_what_is_in(name, rooms)
    # Shapes in annotations are no Python; they are shown as they are written.
    warnings.filterwarnings("ignore", "Error parsing type annotation", UserWarning)
    # Rooms without a list of public names bring their modules with them; these are named once more.
    warnings.filterwarnings("ignore", "The module specification", UserWarning)
    pdoc.render.configure(docformat="google", show_source=False, footer_text="DiffAssemble")
    pdoc.pdoc("diffassemble", *rooms, output_directory=OUT)
    print(f"wrote {len(rooms) + 1} pages; open {OUT / 'index.html'}")


def _list_what_is_in(name: str, rooms: list[str]) -> None:
    """A module's page begins with what it is, and leads to the modules within."""
    inside = [room for room in rooms if room.rpartition(".")[0] == name]
    lines = [f"- `{room}`: {(import_module(room).__doc__ or '').strip().splitlines()[0]}" for room in inside]
    if lines:
        module = import_module(name)
        module.__doc__ = "\n".join([module.__doc__ or "", "", "Within:", "", *lines])


if __name__ == "__main__":
    main()
