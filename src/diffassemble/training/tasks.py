"""What can be learnt, by name."""

from __future__ import annotations

from diffassemble.training.jigsaw import JigsawTask
from diffassemble.training.learner import Task
from diffassemble.training.upright import UprightTask

TASKS: dict[str, type[Task]] = {"jigsaw": JigsawTask, "upright": UprightTask}
