"""What all denoising tasks share: a stream in, the loss of the paper out."""

from collections.abc import Callable

import pytest
import torch

from diffassemble.core import Poses
from diffassemble.network.batch import PuzzleBatch
from diffassemble.training.config import Config
from diffassemble.training.denoising import Denoising, Stream
from diffassemble.training.jigsaw import JigsawTask


def test_a_task_adds_to_the_loss(tiny: Callable[..., Config], monkeypatch: pytest.MonkeyPatch) -> None:
    task = JigsawTask(tiny())
    torch.manual_seed(0)
    model = task.build()
    plain = task.loss(model, 0, 0, 1)

    def further(self: Denoising, batch: PuzzleBatch, true: Poses, predicted: Poses) -> torch.Tensor:
        assert len(true) == len(predicted) == len(batch.puzzle) * task.config.training.noises
        return torch.tensor(3.0)

    monkeypatch.setattr(JigsawTask, "further_loss", further)
    assert task.loss(model, 0, 0, 1).item() == pytest.approx(plain.item() + 3, rel=1e-5)


def test_puzzles_come_from_a_stream(tiny: Callable[..., Config]) -> None:
    assert isinstance(JigsawTask(tiny()).stream, Stream)
