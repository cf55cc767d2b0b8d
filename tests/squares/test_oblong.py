"""Pieces that are not square: cut, written, read, solved, drawn and scored like squares, at half turns only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor

from diffassemble.assembly.answer import assemble
from diffassemble.assembly.kind import SolverOptions
from diffassemble.core import Board, ImagePieces, InputError, Poses, Puzzle, turn_pixels
from diffassemble.io.assemblies import read_assembly, write_assembly
from diffassemble.io.puzzles import open_input, read_puzzle, write_puzzle
from diffassemble.kinds import make_solver
from diffassemble.kinds.squares import SQUARES, bundled_edge_model
from diffassemble.squares.cut import cut_picture, tiles
from diffassemble.squares.edges import Borders, Evidence
from diffassemble.squares.placement import candidate_boards

BOARD = Board(5, 4)
HEIGHT, WIDTH = 100, 240


@pytest.fixture(scope="module")
def picture() -> Tensor:
    """Smooth colours that repeat nowhere, in 8 bits."""
    coarse = torch.rand(1, 3, 9, 13, generator=torch.Generator().manual_seed(0))
    smooth = torch.nn.functional.interpolate(coarse, (HEIGHT, WIDTH), mode="bicubic")[0].clamp(0, 1)
    fine = torch.rand(3, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(1))
    return ((0.9 * smooth + 0.1 * fine) * 255).round() / 255


@pytest.fixture(scope="module")
def puzzle(picture: Tensor) -> Puzzle:
    return cut_picture(picture, BOARD, torch.Generator().manual_seed(4), whole=True)


def test_the_whole_picture_is_kept(picture: Tensor, puzzle: Puzzle) -> None:
    assert puzzle.truth is not None
    assert puzzle.pixels.shape == (20, 3, 20, 60)
    cells, turns = puzzle.board.snap(puzzle.truth)
    assert set(turns.tolist()) == {0, 2}
    assert torch.equal(turn_pixels(puzzle.pixels, turns), tiles(picture, BOARD)[cells])
    assert puzzle.board.aspect == pytest.approx(1 / 3)
    assert puzzle.board == BOARD  # the shape of cells does not make another board
    resized = cut_picture(picture, BOARD, torch.Generator().manual_seed(4), whole=True, size=30, erode=2)
    assert resized.pixels.shape == (20, 3, 6, 26)
    square = cut_picture(picture, Board(5, 12), torch.Generator().manual_seed(4), whole=True)
    assert square.pixels.shape == (60, 3, 20, 20)
    assert not square.board.oblong


def test_only_half_turns_fit() -> None:
    board = replace(Board(3, 3), aspect=2.0)
    assert board.fitting_turns() == board.piece_turns() == (0, 2)
    angles = torch.tensor([0.0, 80.0, 100.0, 190.0, 275.0]).deg2rad()
    rotation = torch.stack([angles.cos(), -angles.sin(), angles.sin(), angles.cos()], 1).view(-1, 2, 2)
    assert board.snap(Poses(rotation, torch.zeros(5, 2)))[1].tolist() == [0, 0, 2, 2, 0]
    turned, *_ = board.turned(torch.tensor([0]), torch.tensor([0]), 2)
    assert turned.aspect == 2.0


def test_upright_sides_never_meet_level_ones(puzzle: Puzzle) -> None:
    borders = Borders.of(puzzle.pixels)
    every = torch.arange(len(borders))
    scores = borders.scores(every, every)
    across = (every[:, None] - every) % 2 == 1
    assert scores[across].min() > 1e8
    assert scores[~across & ~scores.isinf()].max() < 1e6
    model = bundled_edge_model()
    assert model is not None
    for edge_model in (None, model):
        matches = Evidence(puzzle.pixels).matches(BOARD.pitch, 24, edge_model)
        assert ((matches.slot // 4 - matches.slot % 4) % 2 == 0).all()


@pytest.mark.parametrize("name", ["gallagher", "yu", "huroyan", "hybrid", "diffusion"])
def test_solvers_put_oblong_pieces_together(puzzle: Puzzle, name: str) -> None:
    assert puzzle.truth is not None
    solver = make_solver("squares", name, SolverOptions("jigsaw", samples=2, steps=4))
    assembly = assemble(puzzle.without_truth(), solver)
    turns = puzzle.board.snap(assembly.poses)[1]
    assert set(turns.tolist()) <= {0, 2}
    if name != "diffusion":
        assert SQUARES.count_right(assembly, puzzle.truth).free == 20


def test_folders_and_assemblies_come_back(tmp_path: Path, puzzle: Puzzle) -> None:
    assert puzzle.truth is not None
    write_puzzle(puzzle, tmp_path / "puzzle")
    back = read_puzzle(tmp_path / "puzzle")
    assert torch.equal(back.pixels, puzzle.pixels)
    assert back.truth is not None
    torch.testing.assert_close(back.truth.translation, puzzle.truth.translation)
    assembly = assemble(back, make_solver("squares", "gallagher", SolverOptions()))
    write_assembly(assembly, tmp_path / "answer")
    again = read_assembly(tmp_path / "answer", back)
    torch.testing.assert_close(again.poses.translation, assembly.poses.translation, atol=1e-5, rtol=0)
    # In the document, positions have the shape of the picture: its longer side spans 2.
    moves = SQUARES.files.matrices(back, puzzle.board.poses(torch.tensor([0, 19]), torch.tensor([0, 0])))
    span = moves[1, :2, 3] - moves[0, :2, 3]
    torch.testing.assert_close(span, torch.tensor([2 * 3 / 4, 2 * 80 / 240]))


def test_grid_is_found(puzzle: Puzzle, tmp_path: Path, picture: Tensor) -> None:
    assert BOARD in candidate_boards(20, 1 / 3)
    pieces = ImagePieces(puzzle.pixels)
    for index, pixels in enumerate(pieces.pixels):
        levels = (pixels * 255).round().byte().permute(1, 2, 0).numpy()
        Image.fromarray(levels).save(tmp_path / f"{index:02d}.png")
    loose = open_input(tmp_path)
    assert loose.board == BOARD
    assert loose.board.oblong


def test_truth_at_quarter_turns_is_refused(tmp_path: Path, puzzle: Puzzle) -> None:
    write_puzzle(puzzle, tmp_path / "puzzle")
    truth = tmp_path / "puzzle" / "truth.json"
    truth.write_text(truth.read_text().replace('"turn": 2', '"turn": 1', 1))
    with pytest.raises(InputError, match="is not on the board"):
        read_puzzle(tmp_path / "puzzle")
