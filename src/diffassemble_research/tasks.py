"""Training tasks of the paper's baselines."""

from __future__ import annotations

from diffassemble.training.config import Config
from diffassemble.training.fragments import FragmentConfig, FragmentTask, FragmentTraining
from diffassemble_research.baselines import OneShot, OneShotConfig


class BaselineTask(FragmentTask):
    """Broken objects, put together by a network that predicts all poses in one forward pass."""

    defaults = Config(OneShotConfig(), FragmentConfig(), FragmentTraining())
    network = OneShot
