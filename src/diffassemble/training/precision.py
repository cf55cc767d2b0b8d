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

Verdict = Literal["faster", "slower", "fails"]


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


def choose_precision(accelerator: str) -> tuple[Literal["32-true", "bf16-mixed"], str]:
    """The best precision, and in a line why it is not bfloat16 if that fails."""
    if not on_processor(accelerator):
        return "bf16-mixed", ""
    verdict, reason = bfloat16()
    return "bf16-mixed" if verdict == "faster" else "32-true", f"{reason}; training in float32" if reason else ""


def check_precision(precision: str, accelerator: str) -> None:
    """Refuse a precision that would end the process."""
    if precision == "bf16-mixed" and on_processor(accelerator) and bfloat16()[0] == "fails":
        raise InputError(f"--training.precision bf16-mixed: {bfloat16()[1]}; pass auto or 32-true")


def on_processor(accelerator: str) -> bool:
    """Whether this choice of an accelerator means none."""
    return accelerator == "cpu" or (accelerator == "auto" and not torch.accelerator.is_available())


@cache
def bfloat16() -> tuple[Verdict, str]:
    """What bfloat16 is like on this processor, and why it fails if it does; where it works it is tried only once."""
    machine = (platform.node(), platform.processor(), torch.__version__, torch.backends.cpu.get_cpu_capability())
    setting = os.environ.get("ONEDNN_MAX_CPU_ISA", "")
    key = hashlib.sha256(repr((*machine, setting, TRIAL)).encode()).hexdigest()[:16]
    file = cache_folder() / "bfloat16" / key
    for verdict in ("faster", "slower"):
        with suppress(OSError, ValueError):
            if file.read_text() == verdict:
                return verdict, ""
    found, reason = try_bfloat16()
    if found != "fails":
        with suppress(OSError, InputError):  # else the next process tries again
            file.parent.mkdir(parents=True, exist_ok=True)
            write_file(file, found.encode())
    return found, reason


def try_bfloat16(trial: str = TRIAL, config: TrialConfig = DEFAULT) -> tuple[Verdict, str]:
    """Let a child process compute in bfloat16; if it dies or hangs, say so in a few words."""
    try:
        child = subprocess.run([sys.executable, "-c", trial], capture_output=True, text=True, timeout=config.patience)
    except subprocess.TimeoutExpired:
        return "fails", f"bfloat16 does not work here (no answer within {config.patience:g} s)"
    except OSError as error:
        return "fails", f"bfloat16 could not be tried ({error.strerror})"
    if child.returncode < 0:
        return "fails", f"bfloat16 does not work here (the trial was ended by {signal.Signals(-child.returncode).name})"
    try:
        return ("faster" if float(child.stdout) > config.faster else "slower"), ""
    except ValueError:
        words = (child.stderr.strip().splitlines() or ["no answer"])[-1]
        return "fails", f"bfloat16 does not work here ({words})"
