"""Flat pieces to learn from: touching sides face each other, made-up matches are calibrated, the network learns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diffassemble.core import InputError
from diffassemble.core.seeds import seeded
from diffassemble.io.pictures import write_picture
from diffassemble.network.denoiser import Denoiser
from diffassemble.network.encoders.outlines import OutlineEncoder
from diffassemble.outlines.cut import SHAPES
from diffassemble.training.config import Config
from diffassemble.training.outline_data import make_puzzle, make_sheet, with_losses
from diffassemble.training.outlines import OutlineTask, cut_pictures


def small() -> Config:
    run = OutlineTask.defaults
    model = replace(run.model, width=16, layers=1, heads=2, join_hidden=16, features=4)
    data = replace(run.data, sheets=4, held_apart=2, pieces=(4, 8))
    return replace(run, model=model, data=data, training=replace(run.training, pieces=16))


@pytest.mark.parametrize("shape", SHAPES)
def test_sheets_know_who_touches_whom(shape: str) -> None:
    sheet = make_sheet(shape, 6, seeded(0))
    pairs = {tuple(pair) for pair in sheet.pairs.tolist()}
    assert pairs == {(two, one) for one, two in pairs}
    assert {one for one, _ in pairs} == set(range(6))
    if shape == "strips":
        assert len(pairs) == 10
    # Seen from the sheet, the frames of both sides stand at one place and look at each other.
    place = sheet.centres[sheet.pairs[:, 0]] + sheet.contact.translation
    number = {pair: index for index, pair in enumerate(map(tuple, sheet.pairs.tolist()))}
    back = torch.tensor([number[two, one] for one, two in sheet.pairs.tolist()])
    assert float((place - place[back]).norm(dim=-1).median()) < 20
    facing = (sheet.contact.rotation[:, :, 0] * sheet.contact.rotation[back][:, :, 0]).sum(-1)
    assert float(facing.median()) < -0.95


def test_made_up_matches_are_true_as_often_as_they_say() -> None:
    told, right = [], []
    sheets = [make_sheet(shape, 20, seeded(1)) for shape in ("tabs", "shards")]
    for number in range(120):
        puzzle, matches = make_puzzle(sheets[number % 2], 0.2, seeded(2, number))
        assert puzzle.truth is not None
        there = puzzle.truth[matches.second] @ matches.pose
        size = float(puzzle.outlines.areas.median().sqrt())
        true = (there.translation - puzzle.truth[matches.first].translation).norm(dim=-1) < 0.2 * size
        true &= (there.rotation - puzzle.truth[matches.first].rotation).norm(dim=(-1, -2)) < 0.2
        told.append(matches.probability)
        right.append(true.float())
    chance, true = torch.cat(told), torch.cat(right)
    for low, high in ((0.0, 0.1), (0.1, 0.4), (0.4, 0.7), (0.7, 0.95), (0.95, 1.0)):
        some = (chance >= low) & (chance < high)
        assert int(some.sum()) > 50
        assert float(true[some].mean()) == pytest.approx(
            float(chance[some].mean()), abs=0.01 + 1.5 / float(some.sum()) ** 0.5
        )


def test_the_encoder_is_blind_to_turns_and_to_where_outlines_begin() -> None:
    encoder = OutlineEncoder("outline", "invariant", 8)
    outline = make_sheet("torn", 4, seeded(0)).contours[0][::4][None]
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]])
    moved = (outline @ turn.T).roll(17, 1)
    assert torch.allclose(encoder(outline), encoder(moved), atol=1e-3)
    assert not torch.allclose(encoder(outline), encoder(outline * torch.tensor([1.0, 0.5])), atol=1e-2)


def test_a_network_learns_and_a_batch_is_a_function_of_its_step() -> None:
    task = OutlineTask(small())
    torch.manual_seed(0)
    network = Denoiser(task.config.model)
    one, other = (task.loss(network, 3, 0, 1) for _ in range(2))
    assert float(one.detach()) == pytest.approx(float(other.detach()))
    one.backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in network.parameters())
    scores = task.validate(network.eval())
    assert 0 <= scores["right"] <= 100


def test_pieces_of_pictures_are_compared_and_some_of_them_lost(tmp_path: Path) -> None:
    write_picture(torch.rand(3, 90, 120, generator=seeded(0)), tmp_path / "noise.png")
    data = replace(small().data, folders=(tmp_path,), pictures=1, shapes=("tabs",), pieces=(6, 6))
    ((puzzle, matches),) = cut_pictures(data, 0, 24)
    assert len(puzzle) == 6
    assert puzzle.truth is not None
    left, heard = with_losses(puzzle, matches, 0.5, seeded(1))
    assert len(left) == 3
    number = {name: index for index, name in enumerate(puzzle.names)}
    listed = {(*sorted(pair), round(chance, 5)) for *pair, chance in zip(
        matches.first.tolist(), matches.second.tolist(), matches.probability.tolist(), strict=True)}  # fmt: skip
    own = [number[name] for name in left.names]
    for one, two, chance in zip(heard.first.tolist(), heard.second.tolist(), heard.probability.tolist(), strict=True):
        assert (*sorted((own[one], own[two])), round(chance, 5)) in listed


def test_settings_that_hear_nothing_are_refused() -> None:
    run = small()
    with pytest.raises(InputError, match="votes"):
        OutlineTask(replace(run, model=replace(run.model, votes=False)))
