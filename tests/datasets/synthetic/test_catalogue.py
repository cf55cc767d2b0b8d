"""Every class gives sound solids: one watertight body, centred, of length 1, another one with each seed."""

import pytest
import torch
import trimesh

from diffassemble.core import InputError
from diffassemble.fragments.shapes.catalogue import SOLIDS, make_solid, solid_name


def test_the_twenty_classes_of_the_benchmark() -> None:
    assert len(SOLIDS) == 20
    assert list(SOLIDS) == sorted(SOLIDS)


@pytest.mark.parametrize("name", SOLIDS)
def test_solids_are_sound(name: str) -> None:
    volumes = set()
    for seed in range(2):
        mesh = make_solid(name, torch.Generator().manual_seed(seed))
        assert 2000 <= len(mesh.faces) <= 8000
        whole = trimesh.Trimesh(mesh.vertices.numpy(), mesh.faces.numpy(), process=True)
        assert whole.is_watertight
        assert whole.body_count == 1
        assert whole.volume > 1e-4
        assert whole.extents.max() == pytest.approx(1, abs=1e-5)
        assert whole.bounds.sum(0) == pytest.approx(0, abs=1e-5)
        volumes.add(round(whole.volume, 6))
    assert len(volumes) == 2


def test_the_seed_decides() -> None:
    first, second = (make_solid("Mug", torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(first.vertices, second.vertices)
    assert torch.equal(first.faces, second.faces)


def test_names() -> None:
    assert solid_name("wine-glass") == solid_name("Wine glass") == solid_name("wineglass") == "WineGlass"
    assert solid_name("anvil") is None
    with pytest.raises(InputError, match="unknown solid 'anvil'; use one of: BeerBottle, Bottle"):
        make_solid("anvil", torch.Generator())
