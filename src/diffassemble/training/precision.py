"""Which precision to train in: bfloat16 where this machine computes in it, and faster than in float32.

Some virtual machines advertise instructions (AMX) that they may not execute: there the first product of bfloat16
matrices ends the process. So a child process tries it first.
"""

from __future__ import annotations

import hashlib
import os
import platform
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Literal

import torch

from diffassemble.core import InputError
from diffassemble.io.atomic import cache_folder, write_file

Precision = Literal["32-true", "bf16-mixed"]


@dataclass(frozen=True)
class TrialConfig:
    """When a trial of bfloat16 succeeds."""

    faster: float = 1.1
    """how many times as fast as float32 it must be, so that noise does not decide"""
    patience: float = 120.0
    """seconds after which the child counts as hung"""


DEFAULT = TrialConfig()
TRIAL = """
import time, torch

def seconds(kind):
    with torch.autocast("cpu", torch.bfloat16, enabled=kind == torch.bfloat16):
        pixels, rows = torch.rand(4, 8, 32, 32, requires_grad=True), torch.rand(512, 512, requires_grad=True)
        torch.nn.Conv2d(8, 8, 3)(pixels).float().sum().backward()
        torch.nn.Linear(512, 512)(rows).float().sum().backward()
    matrix, best = torch.rand(512, 512).to(kind), float("inf")
    for _ in range(10):
        start = time.perf_counter()
        for _ in range(4):
            matrix @ matrix
        best = min(best, time.perf_counter() - start)
    return best

print(seconds(torch.float32) / seconds(torch.bfloat16))
"""


def choose_precision(asked: str, accelerator: str) -> tuple[Precision, str]:
    """The precision that was asked for, or the best one if "auto"; and in a line why that is not bfloat16 if it fails.

    A precision that would end the process is refused.
    """
    if asked == "32-true":
        return "32-true", ""
    on_processor = accelerator == "cpu" or (accelerator == "auto" and not torch.accelerator.is_available())
    speedup, reason = bfloat16() if on_processor else (torch.inf, "")
    if asked == "bf16-mixed" and reason:
        raise InputError(f"--training.precision bf16-mixed: {reason}; pass auto or 32-true")
    faster = asked == "bf16-mixed" or speedup > DEFAULT.faster
    return "bf16-mixed" if faster else "32-true", f"{reason}; training in float32" if reason else ""


@cache
def bfloat16() -> tuple[float, str]:
    """How many times as fast bfloat16 is on this processor, and why it fails if it does; a success is kept on disk."""
    machine = (platform.node(), platform.processor(), torch.__version__, torch.backends.cpu.get_cpu_capability())
    setting = os.environ.get("ONEDNN_MAX_CPU_ISA", "")
    key = hashlib.sha256(repr((*machine, setting, TRIAL)).encode()).hexdigest()[:16]
    file = cache_folder() / "bfloat16" / key
    with suppress(OSError, ValueError):
        return float(file.read_text()), ""
    speedup, reason = try_bfloat16()
    if not reason:
        with suppress(InputError):  # else the next process tries again
            write_file(file, repr(speedup).encode())
    return speedup, reason


def try_bfloat16(trial: str = TRIAL, config: TrialConfig = DEFAULT) -> tuple[float, str]:
    """Let a child process compute in bfloat16: its speed relative to float32, or 0 and in a few words why it failed."""
    fails = "bfloat16 does not work here"
    try:
        child = subprocess.run([sys.executable, "-c", trial], capture_output=True, text=True, timeout=config.patience)
    except subprocess.TimeoutExpired:
        return 0.0, f"{fails} (no answer within {config.patience:g} s)"
    except OSError as error:
        return 0.0, f"bfloat16 could not be tried ({error.strerror})"
    if child.returncode < 0:
        return 0.0, f"{fails} (the trial was ended by {signal.Signals(-child.returncode).name})"
    try:
        return float(child.stdout), ""
    except ValueError:
        return 0.0, f"{fails} ({(child.stderr.strip().splitlines() or ['no answer'])[-1]})"
