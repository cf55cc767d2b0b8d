"""The one loop: learn, show, validate now and then, and keep what a kill would lose."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import torch
from lightning_fabric import Fabric
from lightning_fabric.utilities.rank_zero import rank_zero_only
from rich.console import Console
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from diffassemble.core import InputError
from diffassemble.core.seeds import seeded
from diffassemble.network.pretrained import Pretrained
from diffassemble.training.config import Config, TrainingConfig, check_config
from diffassemble.training.precision import choose_precision
from diffassemble.training.run_folder import (
    FILE,
    LAST,
    Checkpoint,
    Clock,
    LoggerName,
    Progress,
    Record,
    StopSignal,
    make_log,
    read_checkpoint,
)


class Task(ABC):
    """What is learnt: a network, a loss for every step, a score (higher is better) on data held apart.

    `defaults` is a run of its kind with nothing changed, `unit` the setting of training that is the size of a batch.
    """

    defaults: ClassVar[Config]
    network: ClassVar[type[Pretrained]]
    unit: ClassVar[str] = "pieces"

    def __init__(self, config: Config) -> None:
        self.check(config)
        self.config = config

    def check(self, config: Config) -> None:
        """Refuse what cannot be learnt, by the names of the options."""
        check_config(config)

    def build(self) -> Pretrained:
        """A fresh network."""
        return self.network(self.config.model)

    @abstractmethod
    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        """This process's part of the mean loss over the batch at `step`."""

    @abstractmethod
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Scores by what they are of; the one called "score" chooses the checkpoint."""


class Objective(nn.Module):
    """The loss as a module, so that Fabric can spread it over processes."""

    def __init__(self, model: nn.Module, task: Task) -> None:
        super().__init__()
        self.model = model
        self.task = task

    def forward(self, step: int, rank: int, world: int) -> Tensor:
        return self.task.loss(self.model, step, rank, world)


class Learner:
    """Every step is a function of the seed, the weights and its number, so it can be left off and taken up again."""

    def __init__(self, task: Task, training: TrainingConfig, fabric: Fabric) -> None:
        torch.manual_seed(training.seed)
        self.training, self.fabric = training, fabric
        self.model, self.average = task.build(), task.build().to(fabric.device)
        if training.start_from:
            begin_with(self.model, training.start_from)
        self.average.load_state_dict(self.model.state_dict())
        self.objective, self.optimizer = fabric.setup(Objective(self.model, task), make_optimizer(self.model, training))
        self.done = 0

    def step(self) -> float:
        """Learn from one batch; gives the loss, averaged over all processes."""
        # What a network draws, as for dropout, must follow from the step's number too.
        torch.manual_seed(seeded(self.training.seed, self.done, self.fabric.global_rank).initial_seed())
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.done, self.training)
        loss = self.objective(self.done, self.fabric.global_rank, self.fabric.world_size)
        self.fabric.backward(loss)
        self.fabric.clip_gradients(self.objective, self.optimizer, max_norm=self.training.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.done += 1
        follow(self.average, self.model, min(self.training.average, (1 + self.done) / (10 + self.done)))
        return float(self.fabric.all_reduce(loss.detach()))

    def checkpoint(self, minutes: float, best: float) -> Checkpoint:
        """All of it, to be restored later."""
        weights, average = self.model.state_dict(), self.average.state_dict()
        return Checkpoint(self.done, minutes, best, weights, average, self.optimizer.state_dict())

    def restore(self, checkpoint: Checkpoint, folder: Path) -> None:
        """Take up where the checkpoint of a run's folder left off."""
        try:
            self.model.load_state_dict(checkpoint.weights)
            self.average.load_state_dict(checkpoint.average)
            self.optimizer.load_state_dict(checkpoint.optimizer)
        # What fits neither the network nor the optimizer raises errors of any class.
        except Exception as error:
            raise InputError(
                f"{folder / FILE}: is of another model or optimizer; pass the options that the run was begun with"
            ) from error
        self.done = checkpoint.step


def begin_with(model: Pretrained, name: str) -> None:
    """Give a fresh network the weights of a trained one of the same kind and shape; virtual nodes may be added."""
    weights = type(model).from_pretrained(name).state_dict()
    fresh = model.state_dict()
    weights |= {key: fresh[key] for key in ("virtual",) if key in fresh and key not in weights}
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(f"--training.start-from {name}: is a network of another shape ({reason})") from error


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
    get_ema_multi_avg_fn(decay)(list(average.parameters()), list(model.parameters()), 0)
    for kept, current in zip(average.buffers(), model.buffers(), strict=True):
        kept.copy_(current)


class Stopped(Exception):
    """A run that was asked to stop by a signal has saved what it had; `signal` is the one that asked."""

    def __init__(self, signal: int, step: int) -> None:
        super().__init__(f"stopped and saved at step {step}")
        self.signal = signal


def train(
    config: Config,
    task: Task,
    folder: Path,
    resume: bool,
    logger: LoggerName = "csv",
    clock: Clock = time.monotonic,
) -> Pretrained:
    """Train to the end of the configured steps or minutes; `folder` gets checkpoint, log and the best weights.

    Returns the averaged network. A resumed run ends where the uninterrupted one does; `minutes` limits this call.
    Ctrl-C and SIGTERM end it after the step at hand, saved, with `Stopped`. Rows of the log also go to
    `logger`. Times are read from `clock`, in seconds.
    """
    training = config.training
    checkpoint = read_checkpoint(folder) if resume else None
    fabric = make_fabric(training)
    learner = Learner(task, training, fabric)
    if checkpoint is not None:
        learner.restore(checkpoint, folder)
    spent, best = (0.0, -math.inf) if checkpoint is None else (checkpoint.minutes, checkpoint.best)
    record = None
    if fabric.is_global_zero:
        record = Record(folder, config, learner.done, best, make_log(logger, folder, learner.done), clock)
    console = Console(quiet=record is None)
    batch = getattr(training, task.unit), task.unit
    progress = Progress(console, training.steps, learner.done, training.minutes, batch, clock)
    with StopSignal() as stop, progress.bar:
        # The first process alone reads the clock and receives signals: all must stop after the same step.
        while learner.done < training.steps and fabric.broadcast(
            progress.minutes < training.minutes and stop.signal is None
        ):
            loss = learner.step()
            progress.advance(learner.done, loss)
            if record is not None:
                _keep(learner, task, record, progress, spent)
        if record is not None:
            record.save(learner.checkpoint(spent + progress.minutes, record.best))
            learner.average.save_pretrained(folder / LAST)
    if stop.signal is not None and learner.done < training.steps:
        raise Stopped(stop.signal, learner.done)
    return learner.average


def _keep(learner: Learner, task: Task, record: Record, progress: Progress, spent: float) -> None:
    """Validate and write a checkpoint when it is time for it."""
    training, done = learner.training, learner.done
    minutes = spent + progress.minutes
    row = {"step": f"{done}", "minutes": f"{minutes:.1f}", "loss": f"{progress.mean_loss:.4f}"}
    row["learning_rate"] = f"{learning_rate(done - 1, training):.2e}"
    if done % training.validate_every == 0 or done == training.steps:
        scores = task.validate(learner.average)
        record.scored(learner.average, row, scores)
        progress.report(scores)
    else:
        record.passed(row)
    if record.age >= training.checkpoint_minutes:
        record.save(learner.checkpoint(minutes, record.best))


def make_fabric(training: TrainingConfig) -> Fabric:
    """One process, or several (under torchrun on several machines), in the best precision that the processor has."""
    precision, reason = choose_precision(training.precision, training.accelerator)
    if reason:
        rank_zero_only(Console(stderr=True).print)(reason, highlight=False, soft_wrap=True)
    # A first prediction is given none before it, so not every step uses all weights.
    strategy = "ddp_find_unused_parameters_true" if training.devices * training.nodes > 1 else "auto"
    machines = {"devices": training.devices, "num_nodes": training.nodes}
    fabric = Fabric(accelerator=training.accelerator, strategy=strategy, precision=precision, **machines)
    fabric.launch()
    return fabric
