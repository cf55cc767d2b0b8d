"""The one loop: learn, show, validate now and then, and keep what a kill would lose."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from lightning_fabric import Fabric
from rich.console import Console

from diffassemble.model.pretrained import Pretrained
from diffassemble.training.checkpoint import read_checkpoint
from diffassemble.training.config import Config, TrainingConfig
from diffassemble.training.learner import Learner, Task, learning_rate
from diffassemble.training.progress import Progress
from diffassemble.training.record import LAST, Record


def train(config: Config, task: Task, folder: Path, resume: bool) -> Pretrained:
    """Train to the end of the configured steps or minutes; `folder` gets checkpoint, log and the best weights.

    Returns the averaged network. A resumed run ends where the uninterrupted one does; `minutes` limits this call.
    """
    training = config.training
    checkpoint = read_checkpoint(folder) if resume else None
    fabric = make_fabric(training)
    learner = Learner(task, training, fabric)
    if checkpoint is not None:
        learner.restore(checkpoint, folder)
    spent, best = (0.0, -math.inf) if checkpoint is None else (checkpoint.minutes, checkpoint.best)
    record = Record(folder, config, learner.done, best) if fabric.is_global_zero else None
    console = Console(quiet=record is None)
    with Progress(console, training.steps, learner.done, training.minutes, task.batch) as progress:
        # The first process alone looks at the clock: all must stop after the same step.
        while learner.done < training.steps and fabric.broadcast(progress.minutes < training.minutes):
            loss = learner.step()
            progress.advance(learner.done, loss)
            if record is not None:
                _keep(learner, task, record, progress, spent)
        if record is not None:
            record.save(learner.checkpoint(spent + progress.minutes, record.best))
            learner.average.save_pretrained(folder / LAST)
    return learner.average


def _keep(learner: Learner, task: Task, record: Record, progress: Progress, spent: float) -> None:
    """Validate and write a checkpoint when it is time for it."""
    training, done = learner.training, learner.done
    minutes = spent + progress.minutes
    if done % training.validate_every == 0 or done == training.steps:
        scores = task.validate(learner.average)
        rate = learning_rate(done - 1, training)
        row = {"step": f"{done}", "minutes": f"{minutes:.1f}", "loss": f"{progress.mean_loss:.4f}"}
        record.scored(learner.average, row | {"learning_rate": f"{rate:.2e}"}, scores)
        progress.report(scores)
    if record.age >= training.checkpoint_minutes:
        record.save(learner.checkpoint(minutes, record.best))


def make_fabric(training: TrainingConfig) -> Fabric:
    """One process, or several (under torchrun on several machines), in the best precision that the processor has."""
    precision = training.precision
    if precision == "auto":
        native = torch.ops.mkldnn._is_mkldnn_bf16_supported() or training.accelerator != "cpu"
        precision = "bf16-mixed" if native else "32-true"
    strategy = "ddp" if training.devices * training.nodes > 1 else "auto"
    machines = {"devices": training.devices, "num_nodes": training.nodes}
    fabric = Fabric(accelerator=training.accelerator, strategy=strategy, precision=precision, **machines)
    fabric.launch()
    return fabric
