"""Training tasks of the paper's baselines."""

from __future__ import annotations

from diffassemble.training.config import Config, FragmentConfig
from diffassemble.training.fragments import FragmentTask, FragmentTraining
from diffassemble.training.loop import Task
from diffassemble_research.baselines import OneShot, OneShotConfig


class BaselineTask(FragmentTask):
    """Broken objects, put together by a network that predicts all poses in one forward pass."""

    defaults = Config(OneShotConfig(), FragmentConfig(), FragmentTraining())
    network = OneShot


TASKS: dict[str, type[Task]] = {"baseline": BaselineTask}
