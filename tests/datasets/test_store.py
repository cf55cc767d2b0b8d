"""Pictures in memory: which ones, how often, and that they are what the files say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from diffassemble.core import InputError
from diffassemble.training.pictures import PictureStore, load_picture, load_store, packed, split_paths


def flat(level: int) -> torch.Tensor:
    return torch.full((3, 4, 4), level, dtype=torch.uint8)


@pytest.fixture(scope="module")
def forty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forty")
    for index in range(40):
        (folder / f"{index:02d}.png").touch()
    return folder


@given(held_apart=st.integers(0, 60))
def test_pictures_held_apart_are_never_trained_on(forty: Path, held_apart: int) -> None:
    train, held = split_paths(forty, held_apart)
    assert sorted(train + held) == sorted(forty.iterdir())
    assert len(held) == min(held_apart, 10)


def test_pictures_held_apart_are_spread_evenly(forty: Path) -> None:
    numbers = [int(path.stem) for path in split_paths(forty, 4)[1]]
    assert numbers == [5, 15, 25, 35]


def test_a_few_pictures_are_all_trained_on(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.png").touch()
    assert split_paths(tmp_path, 32) == (sorted(tmp_path.iterdir()), [])


def test_a_published_collection_gives_its_training_pictures(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.jpg").touch()
    (tmp_path / "CelebA-HQ_train.txt").write_text("a.jpg\nb.jpg\n")
    (tmp_path / "CelebA-HQ_test.txt").write_text("c.jpg\n")
    assert split_paths(Path(f"celeba-hq={tmp_path}"), 0)[0] == [tmp_path / "a.jpg", tmp_path / "b.jpg"]


def test_folders_are_drawn_from_by_their_shares() -> None:
    store = PictureStore(((flat(0),), (flat(100), flat(200)), (flat(255),)), (1.0, 3.0, 0.0))
    generator = torch.Generator().manual_seed(0)
    drawn = torch.tensor([float(store.draw(generator).mean()) for _ in range(2000)]) * 255
    shares = [float((drawn.round() == level).float().mean()) for level in (0, 100, 200, 255)]
    assert shares == pytest.approx([0.25, 0.375, 0.375, 0.0], abs=0.05)


def test_equal_shares_unless_told_otherwise() -> None:
    assert load_store([[], []], ()).shares == (1.0, 1.0)


def test_colours_are_kept(tmp_path: Path) -> None:
    levels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    Image.fromarray(levels).save(tmp_path / "a.png")
    store = load_store([[tmp_path / "a.png"]], ())
    drawn = store.draw(torch.Generator())
    assert torch.equal((drawn * 255).round().byte(), torch.from_numpy(levels).movedim(-1, 0))
    assert drawn.dtype == torch.float32


def test_packed_pictures_are_the_same_and_lie_together() -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = [(3, 4 + index % 3, 5) for index in range(7)]
    pictures = [torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8) for shape in shapes]
    found = list(packed(pictures, together=3))
    assert all(torch.equal(one, two) for one, two in zip(pictures, found, strict=True))
    blocks = [picture.untyped_storage().data_ptr() for picture in found]
    assert [blocks.index(block) for block in blocks] == [0, 0, 0, 3, 3, 3, 6]
    assert not list(packed([]))


def test_large_pictures_are_thinned(tmp_path: Path) -> None:
    Image.new("RGB", (1600, 1100), (10, 20, 30)).save(tmp_path / "large.png")
    picture = load_picture(tmp_path / "large.png")
    assert picture.shape == (3, 550, 800)
    assert picture[:, 0, 0].tolist() == [10, 20, 30]


def test_small_pictures_are_named(tmp_path: Path) -> None:
    Image.new("RGB", (90, 60)).save(tmp_path / "small.png")
    assert load_picture(tmp_path / "small.png", smallest=60).shape == (3, 60, 90)
    with pytest.raises(InputError, match=r"small\.png: is 90x60 pixels, but these grids need 61"):
        load_picture(tmp_path / "small.png", smallest=61)
