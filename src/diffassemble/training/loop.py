"""The one loop: Lightning Fabric, a moving average of the weights, checkpoints, a CSV log."""

from __future__ import annotations

import csv
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from diffassemble.model.pretrained import Pretrained
from diffassemble.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from diffassemble.training.config import Config, TrainingConfig
from diffassemble.training.progress import Progress


@runtime_checkable
class Task(Protocol):
    """What is learnt: a network, a loss for every step, a score (higher is better) on pictures held apart."""

    def build(self) -> Pretrained: ...

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor: ...

    def validate(self, model: nn.Module) -> dict[str, float]: ...


class Objective(nn.Module):
    """The loss as a module, so that Fabric can spread it over processes."""

    def __init__(self, model: nn.Module, task: Task) -> None:
        super().__init__()
        self.model = model
        self.task = task

    def forward(self, step: int, rank: int, world: int) -> Tensor:
        return self.task.loss(self.model, step, rank, world)


def train(config: Config, task: Task, folder: Path, resume: bool) -> Pretrained:
    """Train to the end of the configured steps or minutes; `folder` gets checkpoint, log and the best weights.

    Returns the averaged network. Every step is a function of the seed and its number, so a resumed run
    ends where the uninterrupted one does.
    """
    training = config.training
    fabric = make_fabric(training)
    torch.manual_seed(training.seed)
    model, average = task.build(), task.build()
    average.load_state_dict(model.state_dict())
    objective, optimizer = fabric.setup(Objective(model, task), make_optimizer(model, training))
    started, done, best = 0.0, 0, -1.0
    checkpoint = read_checkpoint(folder) if resume else None
    if checkpoint is not None:
        model.load_state_dict(checkpoint.weights)
        average.load_state_dict(checkpoint.average)
        optimizer.load_state_dict(checkpoint.optimizer)
        started, done, best = checkpoint.minutes, checkpoint.step, checkpoint.best
    log = RunLog(folder, config) if fabric.is_global_zero else None
    clock, saved = time.monotonic(), time.monotonic()
    with Progress(training.steps, done, enabled=fabric.is_global_zero) as progress:
        while done < training.steps and (time.monotonic() - clock) / 60 < training.minutes:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(done, training)
            loss = objective(done, fabric.global_rank, fabric.world_size)
            fabric.backward(loss)
            fabric.clip_gradients(objective, optimizer, max_norm=training.clip)
            optimizer.step()
            optimizer.zero_grad()
            done += 1
            follow(average, model, min(training.average, (1 + done) / (10 + done)))
            minutes = started + (time.monotonic() - clock) / 60
            progress.advance(done, float(loss), training.pieces)
            last = done == training.steps
            if log is None:
                continue
            if done % training.validate_every == 0 or last:
                scores = task.validate(average)
                log.write(done, minutes, progress.mean_loss, learning_rate(done - 1, training), scores)
                progress.report(scores)
                if scores["score"] > best:
                    best = scores["score"]
                    average.save_pretrained(folder / "best")
            if last or time.monotonic() - saved > 60 * training.checkpoint_minutes:
                saved = time.monotonic()
                write_checkpoint(_checkpoint(done, minutes, best, model, average, optimizer), folder)
        if log is not None:
            minutes = started + (time.monotonic() - clock) / 60
            write_checkpoint(_checkpoint(done, minutes, best, model, average, optimizer), folder)
            average.save_pretrained(folder / "last")
    return average


def make_fabric(training: TrainingConfig) -> Fabric:
    """One process, or several (also under torchrun), in the best precision that the processor has."""
    precision = training.precision
    if precision == "auto":
        native = torch.ops.mkldnn._is_mkldnn_bf16_supported() or training.accelerator != "cpu"
        precision = "bf16-mixed" if native else "32-true"
    strategy = "ddp" if training.devices > 1 else "auto"
    fabric = Fabric(
        accelerator=training.accelerator, devices=training.devices, strategy=strategy, precision=precision
    )
    fabric.launch()
    return fabric


def make_optimizer(model: nn.Module, training: TrainingConfig) -> torch.optim.Optimizer:
    """AdamW, or the paper's Adagrad."""
    if training.optimizer == "adagrad":
        return torch.optim.Adagrad(model.parameters(), training.learning_rate)
    return torch.optim.AdamW(model.parameters(), training.learning_rate, weight_decay=training.weight_decay)


def learning_rate(step: int, training: TrainingConfig) -> float:
    """Rises over the warm-up, stays, and falls linearly to zero over the last share of the steps."""
    rising = min(1.0, (step + 1) / training.warmup) if training.warmup else 1.0
    falling = min(1.0, (training.steps - step) / max(1.0, training.decay * training.steps))
    return training.learning_rate * rising * falling


@torch.no_grad()
def follow(average: nn.Module, model: nn.Module, decay: float) -> None:
    """Move the averaged weights towards the model's."""
    torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1 - decay)
    for kept, current in zip(average.buffers(), model.buffers(), strict=True):
        kept.copy_(current)


def _checkpoint(
    step: int, minutes: float, best: float, model: nn.Module, average: nn.Module, optimizer: torch.optim.Optimizer
) -> Checkpoint:
    return Checkpoint(step, minutes, best, model.state_dict(), average.state_dict(), optimizer.state_dict())


class RunLog:
    """config.json and log.csv of a run."""

    def __init__(self, folder: Path, config: Config) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "log.csv"
        (folder / "config.json").write_text(json.dumps(asdict(config), indent=2, default=os.fspath) + "\n")

    def write(self, step: int, minutes: float, loss: float, rate: float, scores: dict[str, float]) -> None:
        """Append one row; the header comes first."""
        row = {"step": step, "minutes": f"{minutes:.1f}", "loss": f"{loss:.4f}", "learning_rate": f"{rate:.2e}"}
        row.update({name: f"{value:.2f}" for name, value in scores.items()})
        new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(row))
            if new:
                writer.writeheader()
            writer.writerow(row)
