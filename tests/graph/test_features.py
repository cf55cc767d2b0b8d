"""The dense and the listed form of what pieces know of each other give the same numbers and the same gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diffassemble.network.graph.layout import LISTED_ABOVE, DenseFeatures, ListedFeatures, PairFeatures, pair_features

GRAPHS, WIDTH, SLOTS, CHANNELS, ASKING = 3, 5, 4, 2, 6
GRID = (GRAPHS, ASKING, WIDTH, WIDTH)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def listed(share: float) -> ListedFeatures:
    """Random matings in several graphs, none twice, in no order."""
    generator = torch.Generator().manual_seed(1)
    chosen = (torch.rand(GRAPHS, WIDTH, WIDTH, SLOTS, generator=generator) < share).nonzero()
    graph, receiver, sender, slot = chosen[torch.randperm(len(chosen), generator=generator)].unbind(1)
    return ListedFeatures(graph, receiver, sender, slot, random(len(chosen), CHANNELS, seed=2), SLOTS)


@pytest.fixture(params=[0.0, 0.05, 0.6, 1.0], ids=["none", "few", "many", "all"])
def forms(request: pytest.FixtureRequest) -> tuple[DenseFeatures, ListedFeatures]:
    few = listed(request.param)
    dense = pair_features(few, GRAPHS, WIDTH)
    assert isinstance(dense, DenseFeatures)
    return dense, few


def answer(features: PairFeatures, logits: Tensor, asked: Tensor) -> Tensor:
    """The listed form writes into the logits, so it gets some of its own."""
    return features.ask(logits.clone(), asked)


def test_pairs_have_several_kinds_of_mating_in_several_graphs() -> None:
    many = listed(0.6)
    pair = (many.graph * WIDTH + many.receiver) * WIDTH + many.sender
    assert torch.bincount(pair).max() == SLOTS
    assert many.graph.unique().tolist() == list(range(GRAPHS))


def test_both_forms_give_the_same_answers(forms: tuple[DenseFeatures, ListedFeatures]) -> None:
    logits, asked = random(*GRID, seed=3), random(GRAPHS, WIDTH, ASKING, SLOTS * CHANNELS, seed=4)
    dense, few = (answer(form, logits, asked) for form in forms)
    torch.testing.assert_close(dense, few, rtol=1e-5, atol=1e-5)


def test_both_forms_hear_the_same(forms: tuple[DenseFeatures, ListedFeatures]) -> None:
    attention = random(*GRID, seed=3).softmax(-1)
    dense, few = (form.hear(attention) for form in forms)
    torch.testing.assert_close(dense, few, rtol=1e-5, atol=1e-5)


def test_both_forms_learn_alike(forms: tuple[DenseFeatures, ListedFeatures]) -> None:
    logits = random(*GRID, seed=3).requires_grad_()
    asked = random(GRAPHS, WIDTH, ASKING, SLOTS * CHANNELS, seed=4).requires_grad_()
    aim = random(GRAPHS, WIDTH, ASKING, SLOTS * CHANNELS, seed=5)
    gradients = []
    for form in forms:
        heard = form.hear(answer(form, logits, asked).softmax(-1))
        gradients.append(torch.autograd.grad((heard * aim).sum(), [logits, asked], materialize_grads=True))
    for dense, few in zip(*gradients, strict=True):
        torch.testing.assert_close(dense, few, rtol=1e-4, atol=1e-5)


def test_answers_are_sums_over_the_kinds_of_mating(forms: tuple[DenseFeatures, ListedFeatures]) -> None:
    dense, few = forms
    logits, asked = random(*GRID, seed=3), random(GRAPHS, WIDTH, ASKING, SLOTS * CHANNELS, seed=4)
    expected_logits, expected_heard = logits.clone(), torch.zeros_like(asked)
    rows = zip(few.graph.tolist(), few.receiver.tolist(), few.sender.tolist(), few.slot.tolist(), strict=True)
    for (graph, receiver, sender, slot), evidence in zip(rows, few.evidence, strict=True):
        place = slice(slot * CHANNELS, (slot + 1) * CHANNELS)
        expected_logits[graph, :, receiver, sender] += asked[graph, receiver, :, place] @ evidence
        expected_heard[graph, receiver, :, place] += logits[graph, :, receiver, sender, None] * evidence
    for form in (dense, few):
        torch.testing.assert_close(answer(form, logits, asked), expected_logits, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(form.hear(logits), expected_heard, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("bfloat16")
def test_logits_of_half_precision_stay_so() -> None:
    many, asked = listed(0.6), random(GRAPHS, WIDTH, ASKING, SLOTS * CHANNELS)
    exact = answer(many, random(*GRID), asked)
    half = answer(many, random(*GRID).bfloat16(), asked.bfloat16())
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), exact, rtol=0.05, atol=0.05)


def test_only_large_graphs_are_listed() -> None:
    few = listed(0.05)
    assert pair_features(few, GRAPHS, LISTED_ABOVE + 1) is few
    small = pair_features(few, GRAPHS, WIDTH)
    assert isinstance(small, DenseFeatures)
    assert small.values.shape == (GRAPHS, WIDTH, WIDTH, SLOTS * CHANNELS)
    assert int((small.values != 0).sum()) == few.evidence.numel()
