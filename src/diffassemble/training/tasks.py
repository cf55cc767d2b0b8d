"""What can be learnt, by name."""

from __future__ import annotations

from collections.abc import Mapping

from diffassemble.extensions import Registry
from diffassemble.training.arcs import ArcTask
from diffassemble.training.edge_model import EdgeModelTask
from diffassemble.training.fracture_matching import FractureMatchingTask
from diffassemble.training.fragments import FragmentTask
from diffassemble.training.jigsaw import JigsawTask
from diffassemble.training.loop import Task
from diffassemble.training.orientation import OrientationTask
from diffassemble.training.outlines import OutlineTask
from diffassemble.training.strips import StripTask
from diffassemble.training.upright import UprightTask

_OWN: dict[str, type[Task]] = {
    "jigsaw": JigsawTask,
    "fragments": FragmentTask,
    "fracture-matching": FractureMatchingTask,
    "upright": UprightTask,
    "edge-model": EdgeModelTask,
    "orientation": OrientationTask,
    "outlines": OutlineTask,
    "arcs": ArcTask,
    "strips": StripTask,
}

TASKS: Mapping[str, type[Task]] = Registry("tasks", _OWN)
