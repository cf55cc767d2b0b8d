"""What other installed packages add to the program: verbs, presets, kinds of networks.

A package registers its name under the entry point group `diffassemble.extensions`; its submodule `presets` then holds
a dictionary PRESETS, `networks` NETWORKS, and so on. `verbs` holds VERBS: names of modules with a function `run` that
parses the arguments; a verb of the program is replaced by one that takes its options and more. Nothing else of it is
imported before a name is looked up that the program itself does not know, or all names are listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any, TypeVar

Value = TypeVar("Value")
GROUP = "diffassemble.extensions"


class Registry(Mapping[str, Value]):
    """Values by name: the program's `own`, then those that extensions add to this `part`."""

    def __init__(self, part: str, own: Mapping[str, Value]) -> None:
        self.part, self.own = part, own

    @cached_property
    def _all(self) -> dict[str, Value]:
        return {**contributed(self.part), **self.own}

    def __getitem__(self, name: str) -> Value:
        return self.own[name] if name in self.own else self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.own, **self._all})

    def __len__(self) -> int:
        return len(self._all)


def contributed(part: str) -> dict[str, Any]:
    """All that extensions add to a part, such as "presets"."""
    found: dict[str, Any] = {}
    for entry in entry_points(group=GROUP):
        if find_spec(f"{entry.value}.{part}") is not None:
            found |= getattr(import_module(f"{entry.value}.{part}"), part.upper())
    return found
