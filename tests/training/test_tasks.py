"""Everything that can be learnt is made from one configuration and goes through one loop; presets are complete."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from diffassemble.network.denoiser import Denoiser
from diffassemble.training.config import Config
from diffassemble.training.loop import Task, train
from diffassemble.training.presets import PRESETS
from diffassemble.training.tasks import TASKS


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", TASKS)
def test_tasks_go_through_the_loop(name: str, configs: dict[str, Config], tmp_path: Path) -> None:
    config = configs[name]
    task = TASKS[name](config)
    assert isinstance(task, Task)
    network = train(config, task, tmp_path, resume=False)
    again = type(network).from_pretrained(tmp_path / "last")
    assert again.config == config.model
    assert (tmp_path / "log.csv").read_text().splitlines()[1].startswith("2,")


@pytest.mark.parametrize("name", TASKS)
def test_a_step_is_a_function_of_its_number(name: str, configs: dict[str, Config]) -> None:
    task = TASKS[name](configs[name])
    torch.manual_seed(0)
    model = task.build().eval()
    first, second, again = (task.loss(model, step, 0, 1).item() for step in (3, 4, 3))
    assert first == again != second


def changes(name: str, base: str) -> dict[str, object]:
    one, two = asdict(PRESETS[name].config.model), asdict(PRESETS[base].config.model)
    return {key: value for key, value in one.items() if value != two[key]}


def test_purposes_are_one_line() -> None:
    assert all(0 < len(preset.purpose) < 90 and "\n" not in preset.purpose for preset in PRESETS.values())


def test_the_form_of_the_paper_looks_at_no_pairs() -> None:
    assert changes("jigsaw-paper-form", "jigsaw") == {"edge_features": False, "edge_model": "", "votes": False}
    assert not PRESETS["jigsaw-paper"].config.model.pairwise


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("ablation-")])
def test_ablations_are_one_change_away_from_the_paper_form(name: str) -> None:
    several = {"expander": {"degree", "virtual_nodes", "sparse_solving"}, "regression": {"head", "side_heads"}}
    changed = changes(name, "jigsaw-paper-form").keys()
    expected = several.get(name.removeprefix("ablation-"))
    assert changed == expected if expected else len(changed) == 1
    same = PRESETS[name].config.training == PRESETS["jigsaw-paper-form"].config.training
    assert same == (name != "ablation-regression")  # which has no other loss


def test_the_published_sizes() -> None:
    config = PRESETS["jigsaw-paper"].config
    model = Denoiser(config.model)
    assert 4 * config.model.features == 1088
    assert 1088 + config.model.pose_width + config.model.time_width == config.model.width == 1152
    assert len(model.stack.layers) == 4
    assert config.training.optimizer == "adagrad"
    assert config.training.learning_rate == 1e-4


def test_a_list_of_presets_needs_no_torch() -> None:
    script = "import sys; from diffassemble.cli import train; train.run(['--help']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
