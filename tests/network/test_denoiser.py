"""The network: symmetry, evidence, padding, and the graphs that it works on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from diffassemble.core import InputError, Puzzle
from diffassemble.core.poses import random_rotations
from diffassemble.core.seeds import seeded
from diffassemble.network.batch import PuzzleBatch, pack
from diffassemble.network.denoiser import Denoiser, view_matches
from diffassemble.network.encoders.points import PointEncoder
from diffassemble.network.evidence import POWERS, THRESHOLDS
from diffassemble.network.graph import DenseGraph, EdgeGraph, complete_edges, lifted
from diffassemble.network.layers import likely_neighbours
from diffassemble.squares.edges import EdgeModel, EdgeModelConfig, find_matches, match_finder
from diffassemble_research.parts import Axes, PosedFeatures

Make = Callable[..., Denoiser]
FORMS = [
    {},
    {"edge_features": False},
    {"votes": False},
    {"edge_features": False, "votes": False},
    {"edge_features": False, "votes": False, "board": False, "stack": "published"},
    {"layer": "gcn", "edge_features": False},
    {"symmetry": "invariant"},
    {"symmetry": "plain", "times": 1},
    {"virtual_nodes": 3},
    {"head": "cells"},
    {"head": "cells", "edge_features": False, "votes": False, "side_heads": True, "virtual_nodes": 2},
    {"head": "cells", "backbone": "efficientnet", "edge_features": False, "votes": False, "side_heads": True},
    {"head": "cells", "layer": "gcn", "edge_features": False, "symmetry": "plain"},
]


def noisy_poses(count: int, samples: int, times: int) -> tuple[Tensor, Tensor]:
    noisy = torch.randn(count, samples, 4, generator=seeded(0))
    return noisy, torch.randint(1, times + 1, (count, samples), generator=seeded(1))


def surely(puzzle: Puzzle) -> PuzzleBatch:
    """The puzzle with its true matches alone, all of them very probable."""
    batch = pack([puzzle], find_matches)
    matches, truth, board = batch.matches, puzzle.truth, puzzle.board
    wanted, found = truth[matches.second] @ matches.pose, truth[matches.first]
    apart = (wanted.translation - found.translation).norm(dim=-1) + (wanted.rotation - found.rotation).norm(dim=(1, 2))
    true = matches[apart < 1e-4]
    assert len(true) == 2 * (board.rows * (board.cols - 1) + board.cols * (board.rows - 1))
    return replace(batch, matches=replace(true, evidence=torch.full_like(true.evidence, 0.95)))


@pytest.fixture(autouse=True)
def _no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_neither_layout_nor_order_nor_other_puzzles_nor_other_samples_matter(
    make_model: Make, puzzles: list[Puzzle], form: dict[str, object]
) -> None:
    model, batch = make_model(**form), pack(puzzles, find_matches)
    config, matches = model.config, batch.matches if model.config.edge_features else None
    noisy, time = noisy_poses(13, 2, config.times)
    dense = model.condition(batch)
    assert isinstance(dense.graph, DenseGraph)
    predicted = model(noisy, time, dense)
    assert predicted.shape == noisy.shape
    # 1. An edge list instead of padded graphs.
    if matches is not None and config.nodes_each > 1:
        matches = view_matches(matches)
    edges, owner = complete_edges(batch.puzzle), batch.puzzle.repeat_interleave(config.nodes_each)
    graph = EdgeGraph.of(lifted(edges, config.nodes_each), owner, matches, config.edge_slots, config.virtual_nodes)
    neighbours = None if dense.sides is None else likely_neighbours(dense.sides, graph)
    listed = model(noisy, time, replace(dense, graph=graph, neighbours=neighbours))
    torch.testing.assert_close(listed, predicted, rtol=1e-5, atol=1e-5)
    # 2. One puzzle and one sample alone, its pieces in another order.
    own, order = batch.puzzle == 1, torch.randperm(len(puzzles[1]), generator=seeded(2))
    alone = model.condition(pack([puzzles[1].reordered(order)], find_matches))
    found = model(noisy[own][order][:, [1]], time[own][order][:, [1]], alone)
    torch.testing.assert_close(found, predicted[own][order][:, [1]], rtol=1e-5, atol=1e-5)


def test_pieces_poses_and_time_all_matter(make_model: Make, puzzles: list[Puzzle]) -> None:
    model, batch = make_model(edge_features=False, votes=False), pack(puzzles[:1])
    noisy, time = noisy_poses(6, 1, model.config.times)
    plain = model(noisy, time, model.condition(batch))
    for changed in (
        model(noisy, time, model.condition(replace(batch, content=batch.content.flip(-1)))),
        model(noisy, time, model.condition(replace(batch, board=batch.board + 1))),
        model(noisy.flip(0), time, model.condition(batch)),
        model(noisy, time.flip(0), model.condition(batch)),
    ):
        assert (changed - plain).abs().max() > 1e-4


def test_an_edge_model_comes_by_its_name_with_who_looks_at_pairs(
    make_model: Make, puzzles: list[Puzzle], tmp_path: Path
) -> None:
    EdgeModel(EdgeModelConfig(depth=4, length=8, width=8, blocks=1)).save_pretrained(tmp_path / "edge-model")
    named = make_model(edge_model=str(tmp_path / "edge-model"))
    named.save_pretrained(tmp_path / "model")
    again = Denoiser.from_pretrained(tmp_path / "model")
    assert again.state_dict().keys() == make_model().state_dict().keys()
    batch, plain = pack(puzzles, match_finder(again)), pack(puzzles, find_matches)
    assert not torch.equal(batch.matches.probability, plain.matches.probability)
    assert match_finder(make_model(edge_features=False, votes=False, edge_model="nowhere")) is None
    with pytest.raises(InputError, match="nowhere"):
        match_finder(make_model(edge_model="nowhere"))


@pytest.mark.parametrize("time", [1, 100, 300])
def test_estimates_on_a_scaled_truth_are_a_scaled_truth(make_model: Make, puzzles: list[Puzzle], time: int) -> None:
    model, puzzle = make_model(), puzzles[0]
    truth = model.space.to_vector(puzzle.truth)[:, None].expand(-1, 2, -1)
    alpha_bar = model.schedule.alpha_bar[time]
    times = torch.full((6, 2), time)
    estimates = model._estimates(alpha_bar.sqrt() * truth, times, model.condition(surely(puzzle)))[0]
    linear, decided = estimates.split([1 + len(POWERS) + len(THRESHOLDS), len(THRESHOLDS)], 2)
    expected = alpha_bar / (alpha_bar + 0.1 * (1 - alpha_bar)) * truth
    torch.testing.assert_close(linear, expected[:, :, None].expand_as(linear), rtol=1e-4, atol=1e-5)
    if time == 1:  # with hardly any noise a cluster knows its turn, and one that is the whole board its place
        torch.testing.assert_close(decided, truth[:, :, None].expand_as(decided), rtol=1e-4, atol=1e-5)


def test_an_untrained_network_predicts_the_mean_of_all_estimates(make_model: Make, puzzles: list[Puzzle]) -> None:
    torch.manual_seed(0)
    model, puzzle = Denoiser(make_model().config).eval(), puzzles[0]
    torch.nn.init.zeros_(model.head[-1].weight)
    torch.nn.init.zeros_(model.head[-1].bias)
    condition = model.condition(surely(puzzle))
    noisy, time = noisy_poses(6, 3, model.config.times)
    torch.testing.assert_close(model(noisy, time, condition), model._estimates(noisy, time, condition)[0].mean(2))
    truth = model.space.to_vector(puzzle.truth)[:, None]
    torch.testing.assert_close(model(truth, torch.ones(6, 1).long(), condition), truth, rtol=0.01, atol=0.01)


def test_sparse_graphs_are_for_learning_for_solving_if_wanted_and_for_large_puzzles(
    make_model: Make, puzzles: list[Puzzle]
) -> None:
    batch = pack(puzzles, find_matches)
    noisy, time = noisy_poses(13, 2, 300)
    for settings, solving in (
        ({"degree": 2.0}, DenseGraph),
        ({"degree": 2.0, "sparse_solving": True, "virtual_nodes": 2}, EdgeGraph),
        ({"degree": 0.4, "top_k": 1, "sparse_solving": True}, EdgeGraph),
        ({"complete_up_to": 5}, EdgeGraph),
        ({"complete_up_to": 6, "virtual_nodes": 2}, DenseGraph),
    ):
        model = make_model(**settings)
        conditions = model.condition(batch), model.condition(batch, seeded(0))
        assert isinstance(conditions[0].graph, solving)
        assert isinstance(conditions[1].graph, EdgeGraph if "degree" in settings else solving)
        for condition in conditions:
            assert model(noisy, time, condition).isfinite().all()
        assert torch.equal(model(noisy, time, conditions[0]), model(noisy, time, model.condition(batch)))


SPARSE = [{}, {"dropped_edges": 0.5}, {"degree": 2.0, "virtual_nodes": 2, "top_k": 1}]


@pytest.mark.usefixtures("bfloat16")
@pytest.mark.parametrize("form", SPARSE, ids=str)
def test_half_precision_stays_close(make_model: Make, puzzles: list[Puzzle], form: dict[str, object]) -> None:
    model, batch = make_model(**form), pack(puzzles, find_matches)
    noisy, time = noisy_poses(13, 2, model.config.times)
    full = model(noisy, time, model.condition(batch, seeded(0)))
    with torch.autocast("cpu", torch.bfloat16):
        half = model(noisy, time, model.condition(pack(puzzles, find_matches), seeded(0)))
    torch.testing.assert_close(half.float(), full, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("form", SPARSE, ids=str)
def test_tensors_are_made_where_the_data_is(make_model: Make, puzzles: list[Puzzle], form: dict[str, object]) -> None:
    """With another default device, whatever is made without asking the data's device would not fit to it."""
    model, batch = make_model(**form), pack(puzzles, find_matches)
    noisy, time = noisy_poses(13, 2, model.config.times)
    expected = model(noisy, time, model.condition(batch, seeded(0)))
    generator = seeded(0)
    with torch.device("meta"):
        predicted = model(noisy, time, model.condition(batch, generator))
        drawn = model.schedule.noisy(noisy, time, noisy)
    assert torch.equal(predicted, expected)
    assert drawn.device == noisy.device


def test_axes_turn_with_the_fragment_and_its_shape_does_not() -> None:
    generator = torch.Generator().manual_seed(0)
    encoder = PointEncoder("vn_dgcnn", "equivariant", 8)
    standing, axes = PosedFeatures(encoder), Axes(8, 16)
    torch.nn.init.normal_(axes.weights.weight, generator=generator)
    points = torch.randn(3, 60, 3, generator=generator)
    turn = random_rotations(3, generator)
    nodes = torch.randn(3, 1, 16, generator=generator)
    with torch.no_grad():
        plain, turned = encoder(points), encoder(points @ turn.mT)
        assert torch.allclose(standing.shape(plain), standing.shape(turned), atol=1e-3)
        wanted = axes(nodes, plain[:, None]) @ turn.mT[:, None]
        assert torch.allclose(axes(nodes, turned[:, None]), wanted, atol=1e-3)
        assert float(wanted.norm()) > 0.1
