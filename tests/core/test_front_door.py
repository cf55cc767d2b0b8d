"""What people see who work in Python: short lines, pictures in notebooks, locks and progress."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from io import BytesIO

import pytest
import torch
from PIL import Image

import diffassemble as da


def test_lines_are_short(cut: Callable[..., da.Puzzle]) -> None:
    puzzle = cut(2, 3)
    assert repr(puzzle) == "Puzzle(6 pieces of a picture, grid 2x3, truth known)"
    assert repr(puzzle.truth) == "Poses(6 in 2 dimensions)"
    answer = da.solve(puzzle, "identity")
    assert repr(answer) == "Answer(6 pieces of a picture by 'identity', 0 sure)"
    one = torch.zeros(1, dtype=torch.long)
    found = da.Matches(one, one, da.Poses.identity(1, 2), one, torch.ones(1, 3))
    assert repr(found) == "Matches(1 candidates, 1 of them at 0.9 or more)"


def test_notebooks_show_what_was_assembled_and_its_confidence(cut: Callable[..., da.Puzzle]) -> None:
    answer = da.solve(cut(2, 3), "identity")
    content, page = answer._repr_png_(), answer._repr_html_()
    assert content is not None
    assert page is not None
    with Image.open(BytesIO(content)) as picture:
        width, height = picture.size
    assert 2 * width == 3 * height
    assert page.startswith('<figure><img src="data:image/png;base64,')
    assert page.count("6 pieces of a picture by identity") == 2
    assert "6 guessed</figcaption>" in page


def test_notebooks_show_pieces(cut: Callable[..., da.Puzzle]) -> None:
    flat = da.cut_shape(str(files("skimage.data") / "coffee.png"), "shards", pieces=4, seed=0)
    for puzzle in (cut(2, 3), flat, da.fracture("bowl", pieces=2, seed=0)):
        content = puzzle._repr_png_()
        assert content is not None
        with Image.open(BytesIO(content)) as picture:
            assert len(picture.getcolors(picture.width * picture.height) or ()) > 10


def test_locks_and_progress(cut: Callable[..., da.Puzzle], capsys: pytest.CaptureFixture[str]) -> None:
    puzzle = cut(2, 3)
    assert puzzle.truth is not None
    locks = da.Locks(torch.arange(6) < 3, puzzle.truth)
    answer = da.solve(puzzle, "random", locks=locks, progress=True)
    assert "solving" in capsys.readouterr().err
    torch.testing.assert_close(answer.poses.translation[:3], puzzle.truth.translation[:3])
    torch.testing.assert_close(answer.poses.rotation[:3], puzzle.truth.rotation[:3])
    assert repr(answer.puzzle).endswith("3 locked, truth known)")
    with pytest.raises(da.InputError, match="locks are of 2 pieces, but the puzzle has 6"):
        da.solve(puzzle, "random", locks=locks[torch.tensor([0, 1])])
