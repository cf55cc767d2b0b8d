"""Weights are saved and loaded whole, or refused in one line."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from diffassemble.core import InputError, Puzzle
from diffassemble.network import pretrained
from diffassemble.network.batch import pack
from diffassemble.network.denoiser import Denoiser, load_network
from diffassemble.network.pretrained import Pretrained, bundled_models, find_model
from diffassemble.squares.edges import find_matches
from diffassemble_research.baselines import OneShot, OneShotConfig

Make = Callable[..., Denoiser]


class Other(Pretrained):
    """Another kind of network with the same settings."""

    config_class = Denoiser.config_class


@pytest.fixture
def folder(make_model: Make, tmp_path: Path) -> Path:
    make_model().save_pretrained(tmp_path / "deep" / "model")
    return tmp_path / "deep" / "model"


def change(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def refused(name: Path | str, kind: type[Pretrained] = Denoiser) -> str:
    with pytest.raises(InputError) as caught:
        kind.from_pretrained(name)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500
    return message


@torch.no_grad()
def test_round_trip(make_model: Make, folder: Path, puzzles: list[Puzzle]) -> None:
    model, again = make_model(), Denoiser.from_pretrained(folder)
    assert again.config == model.config
    assert not again.training
    noisy, time = torch.randn(13, 2, 4), torch.full((13, 2), 7)
    batch = pack(puzzles, find_matches)
    assert torch.equal(again(noisy, time, again.condition(batch)), model(noisy, time, model.condition(batch)))


def test_settings_that_are_not_told_are_the_defaults_and_old_names_are_known(make_model: Make, folder: Path) -> None:
    path = folder / "config.json"
    values = json.loads(path.read_text())
    del values["board"], values["space"]
    values["judge"] = values.pop("edge_model")
    path.write_text(json.dumps(values))
    assert Denoiser.from_pretrained(folder).config == make_model().config


def test_saving_again_replaces_the_weights_and_keeps_the_card(make_model: Make, folder: Path) -> None:
    (folder / "README.md").write_text("a card")
    make_model(width=32).save_pretrained(folder)
    assert Denoiser.from_pretrained(folder).config.width == 32
    assert (folder / "README.md").read_text() == "a card"
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]


def test_weights_that_do_not_fit(folder: Path) -> None:
    change(folder, width=32)
    message = refused(folder)
    assert f"{folder / 'model.safetensors'}: the weights do not fit config.json" in message
    assert "size mismatch" in message
    save_file({"something": torch.zeros(3)}, folder / "model.safetensors")
    assert "the weights do not fit config.json" in refused(folder)
    (folder / "model.safetensors").unlink()
    assert "model.safetensors: cannot be read" in refused(folder)


def test_a_pickle_is_not_opened(folder: Path, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return Path.touch, (tmp_path / "sprung",)

    for content in (pickle.dumps(Trap()), b"\x80\x02"):
        (folder / "model.safetensors").write_bytes(content)
        message = refused(folder)
        assert "model.safetensors: not a safetensors file" in message
        assert "pickled weights are refused" in message
    torch.save({"weight": torch.zeros(2)}, folder / "model.safetensors")
    assert "not a safetensors file" in refused(folder)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '"text"', "{}"])
def test_a_configuration_that_is_none_or_of_another_kind(folder: Path, text: str) -> None:
    assert "describes a Denoiser, but a Other is needed" in refused(folder, Other)
    (folder / "config.json").write_text(text)
    assert f"{folder / 'config.json'}: " in (message := refused(folder))
    assert "is empty" in message or "model configuration" in message


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"symmetry": "mirrored"}, "symmetry is 'mirrored', but must be one of equivariant, invariant, plain"),
        ({"width": "wide"}, "width is 'wide', but must be int"),
        ({"layers": None}, "layers is None, but must be int"),
        ({"votes": 1}, "votes is 1, but must be bool"),
        ({"dropped_edges": "0.5"}, "dropped_edges is '0.5', but must be float"),
        ({"width": 25}, "heads 4: must be a divisor of the width 25"),
        ({"times": 0}, "times 0: must be 1 or more"),
        ({"posed": True}, "posed True: must be off"),
        ({"zeal": 3, "ardour": True}, "unknown settings ardour, zeal; was it made by a newer version?"),
    ],
)
def test_settings_that_make_no_network(folder: Path, values: dict[str, object], words: str) -> None:
    change(folder, **values)
    assert refused(folder).startswith(f"{folder / 'config.json'}: {words}")


def test_names(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(pretrained, "BUNDLED", folder.parent)
    assert bundled_models() == ["model"]
    assert find_model("model") == find_model(folder) == find_model(str(folder)) == folder
    assert Denoiser.from_pretrained("model").config.width == 24
    for name in ("modell", "./nowhere", "a/b/c", "/nowhere"):
        assert refused(name) == f"no model '{name}': neither a folder nor a bundled model (model)"


def test_the_hub_is_asked_for_two_part_names_only(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    asked: list[str] = []

    def answer(name: str, allow_patterns: list[str]) -> str:
        asked.append(name)
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", answer)
    assert find_model("somebody/something") == folder
    refused("nothing")
    assert asked == ["somebody/something"]

    def silence(name: str, allow_patterns: list[str]) -> str:
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr("huggingface_hub.snapshot_download", silence)
    message = refused("somebody/something")
    assert message == "no folder 'somebody/something', and the hub does not answer for it (ConnectionError)"


def test_a_baseline_comes_back_as_one(tmp_path: Path) -> None:
    OneShot(OneShotConfig("dgl", "pointnet", features=8, width=16)).save_pretrained(tmp_path)
    network = load_network(tmp_path)
    assert isinstance(network, OneShot)
    assert network.config.baseline == "dgl"
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(InputError, match="not a model configuration"):
        load_network(tmp_path)


def test_uploading(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: dict[str, set[str]] = {}

    class Hub:
        def create_repo(self, name: str, private: bool, exist_ok: bool) -> str:
            return f"hub/{name}"

        def upload_folder(self, repo_id: str, folder_path: str, commit_message: str) -> None:
            sent[repo_id] = {path.name for path in Path(folder_path).iterdir()}

    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    network = Denoiser.from_pretrained(tiny_model)
    assert network.push_to_hub("somebody/something") == "hub/somebody/something"
    assert sent == {"somebody/something": {"config.json", "model.safetensors", "README.md"}}
    with pytest.raises(InputError, match="owner/name, not 'mine'"):
        network.push_to_hub("mine")
