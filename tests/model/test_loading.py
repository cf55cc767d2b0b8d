"""What a folder holds is what is loaded."""

from pathlib import Path

import pytest

from diffassemble.core import InputError
from diffassemble.network.baselines import OneShot, OneShotConfig
from diffassemble.network.denoiser import Denoiser
from diffassemble.network.loading import load_network


def test_a_baseline_comes_back_as_one(tmp_path: Path) -> None:
    OneShot(OneShotConfig("dgl", "pointnet", features=8, width=16)).save_pretrained(tmp_path)
    network = load_network(tmp_path)
    assert isinstance(network, OneShot)
    assert network.config.baseline == "dgl"


def test_the_bundled_model_is_a_denoiser() -> None:
    assert isinstance(load_network("jigsaw"), Denoiser)


def test_other_things_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(InputError, match="not a model configuration"):
        load_network(tmp_path)
