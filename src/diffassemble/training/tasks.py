"""What can be learnt, by name."""

from __future__ import annotations

from diffassemble.training.critic import CriticTask
from diffassemble.training.fracture_matching import FractureMatchingTask
from diffassemble.training.fragments import BaselineTask, FragmentTask
from diffassemble.training.jigsaw import JigsawTask
from diffassemble.training.learner import Task
from diffassemble.training.posture import PostureTask
from diffassemble.training.side_judge import SideJudgeTask
from diffassemble.training.upright import UprightTask

TASKS: dict[str, type[Task]] = {
    "jigsaw": JigsawTask,
    "fragments": FragmentTask,
    "baseline": BaselineTask,
    "fracture-matching": FractureMatchingTask,
    "upright": UprightTask,
    "side-judge": SideJudgeTask,
    "posture": PostureTask,
    "critic": CriticTask,
}
