"""Cut-outs and masks become puzzles, and places are told in pixels of what is drawn."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from diffassemble.assembly.answer import Answer
from diffassemble.assembly.scoring import right_outlines
from diffassemble.core import InputError, Placements, Poses, Puzzle
from diffassemble.core.contours import outline_pieces
from diffassemble.core.poses import plane_rotations
from diffassemble.io.assemblies import assembly_bytes, read_assembly
from diffassemble.io.outlines import file_matrices
from diffassemble.io.puzzles import open_input, read_puzzle, write_puzzle
from diffassemble.kinds import solve


def box(width: int, height: int, size: int = 40) -> np.ndarray:
    """A box in the middle of a picture of colours, opaque inside only."""
    picture = np.random.default_rng(width).integers(256, size=(size, size, 4), dtype=np.uint8)
    picture[..., 3] = 0
    left, top = (size - width) // 2, (size - height) // 2
    picture[top : top + height, left : left + width, 3] = 255
    return picture


def boxes(count: int = 3) -> Puzzle:
    """Boxes of several sizes, each at a place and turn of its own."""
    textures = [torch.from_numpy(box(12 + 3 * index, 20)).movedim(-1, 0).contiguous() for index in range(count)]
    places = torch.arange(count)[:, None] * torch.tensor([31.0, 17.0]) - 50
    truth = Poses(plane_rotations(torch.arange(count) * 0.7), places)
    return Puzzle(outline_pieces(textures), None, tuple(f"{index}.png" for index in range(count)), truth)


@pytest.fixture
def cutouts(tmp_path: Path) -> Path:
    folder = tmp_path / "cutouts"
    folder.mkdir()
    for index in range(3):
        Image.fromarray(box(12 + 3 * index, 20)).save(folder / f"{index}.png")
    return folder


def test_matrices_move_pixels_of_the_files_into_the_drawn_picture() -> None:
    puzzle = boxes()
    assert puzzle.truth is not None
    pieces, poses = puzzle.outlines, puzzle.truth
    moves = file_matrices(pieces, poses)
    corner = torch.tensor(pieces.corner(poses))
    for move, contour, origin, turn, shift in zip(
        moves, pieces.contours, pieces.origins, poses.rotation, poses.translation, strict=True
    ):
        in_file = torch.cat([contour + origin, torch.zeros(len(contour), 1), torch.ones(len(contour), 1)], 1)
        moved = (in_file.double() @ move.T)[:, :2]
        torch.testing.assert_close(moved, (contour @ turn.T + shift - corner).double(), atol=1e-4, rtol=0)
    everything = torch.cat([contour @ turn.T + shift for contour, turn, shift in
                            zip(pieces.contours, poses.rotation, poses.translation, strict=True)])  # fmt: skip
    assert bool(((everything - corner).amin(0) >= -1e-3).all())
    assert bool(((everything - corner).amin(0) < 1).all())


def test_the_whole_may_stand_anywhere_and_the_document_stays_the_same() -> None:
    puzzle = boxes()
    assert puzzle.truth is not None
    sure = torch.ones(3)
    shifted = Poses(puzzle.truth.rotation, puzzle.truth.translation + torch.tensor([-300.0, 1000.0]))
    one, two = (
        assembly_bytes(Answer(puzzle, Placements(poses, sure), (), "told", 0.0)) for poses in (puzzle.truth, shifted)
    )
    places = [[(r["x"], r["y"], r["degrees"]) for r in json.loads(content)["pieces"]] for content in (one, two)]
    assert np.allclose(places[0], places[1], atol=2e-3)
    assert places[0][1][2] == pytest.approx(math.degrees(0.7), abs=1e-3)


def test_people_may_write_x_y_and_degrees(tmp_path: Path) -> None:
    puzzle = boxes()
    assert puzzle.truth is not None
    document = json.loads(assembly_bytes(Answer(puzzle, Placements(puzzle.truth, torch.ones(3)), (), "told", 0.0)))
    record = document["pieces"][1]
    del record["matrix"]
    record.update(x=100.5, y=20.25, degrees=90)
    file = tmp_path / "assembly.json"
    file.write_text(json.dumps(document))
    poses = read_assembly(file, puzzle).poses
    torch.testing.assert_close(poses.translation[1], torch.tensor([100.5, 20.25]))
    torch.testing.assert_close(poses.rotation[1], torch.tensor([[0.0, -1.0], [1.0, 0.0]]), atol=1e-6, rtol=0)
    for spoil, words in (
        ({"x": 3.0}, "x of 0.png does not agree with its matrix"),
        ({"degrees": 200.0}, "degrees of 0.png does not agree"),
        ({"matrix": [[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]}, "out of the plane"),
        ({"matrix": [[-1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]}, "not a turn and a shift"),
    ):
        spoilt = [{**document["pieces"][0], **spoil}, *document["pieces"][1:]]
        file.write_text(json.dumps({**document, "pieces": spoilt}))
        with pytest.raises(InputError, match=words):
            read_assembly(file, puzzle)


def test_silhouettes_stay_silhouettes(tmp_path: Path) -> None:
    puzzle = boxes()
    write_puzzle(replace(puzzle, pieces=replace(puzzle.outlines, coloured=False)), tmp_path / "a")
    assert not read_puzzle(tmp_path / "a").outlines.coloured


def test_cut_outs_are_told_from_squares(cutouts: Path) -> None:
    told: list[str] = []
    puzzle = open_input(cutouts, say=told.append)
    assert (puzzle.kind, puzzle.names) == ("outlines", ("0.png", "1.png", "2.png"))
    assert told == ["taken for outlines: 3 cut-outs with alpha"]
    assert puzzle.outlines.areas.tolist() == pytest.approx([12 * 20, 15 * 20, 18 * 20], rel=0.01)
    assert puzzle.outlines.textures[1].movedim(0, -1).numpy().tolist() == box(15, 20).tolist()


@pytest.mark.parametrize("layout", ["beside", "twins", "apart"])
def test_masks_are_read_however_they_lie(layout: str, tmp_path: Path, cutouts: Path) -> None:
    folder = tmp_path / "masked"
    pictures, masks = {
        "beside": (folder, folder / "masks"),
        "twins": (folder, folder),
        "apart": (folder / "scans", folder / "masks"),
    }[layout]
    for place in (pictures, masks):
        place.mkdir(parents=True, exist_ok=True)
    for file in cutouts.iterdir():
        image = Image.open(file)
        image.convert("RGB").save(pictures / file.name)
        name = f"{file.stem}_mask.png" if layout == "twins" else file.name
        image.getchannel("A").point(lambda level: level > 127, "1").save(masks / name)
    given, masked = open_input(cutouts).outlines, open_input(folder).outlines
    assert all(torch.equal(one, two) for one, two in zip(given.textures, masked.textures, strict=True))


def test_bad_input_is_told_by_name(tmp_path: Path, cutouts: Path) -> None:
    Image.fromarray(box(10, 10)[..., :3]).save(cutouts / "opaque.png")
    with pytest.raises(InputError, match=r"opaque\.png: has no alpha, though others have"):
        open_input(cutouts)
    (cutouts / "opaque.png").unlink()
    Image.new("RGBA", (10, 10)).save(cutouts / "empty.png")
    with pytest.raises(InputError, match=r"empty\.png: is nowhere opaque"):
        open_input(cutouts)
    for file in sorted(cutouts.iterdir())[1:]:
        file.unlink()
    with pytest.raises(InputError, match="has only 1 piece"):
        open_input(cutouts)
    (cutouts / "masks").mkdir()
    Image.new("L", (7, 9), "white").save(cutouts / "masks" / "0.png")
    with pytest.raises(InputError, match="mask and picture have 7x9 and 40x40 pixels"):
        open_input(cutouts)
    Image.fromarray(box(10, 10)).save(cutouts / "1.png")
    with pytest.raises(InputError, match=r"1\.png: has no mask, though others have"):
        open_input(cutouts)


def test_right_pieces_do_not_depend_on_where_the_whole_stands() -> None:
    puzzle = boxes(6)
    assert puzzle.truth is not None
    whole = Poses(plane_rotations(torch.full((6,), 2.0)), torch.tensor([[70.0, -30.0]]).expand(6, 2))
    moved = whole @ puzzle.truth
    assert bool(right_outlines(puzzle.outlines, moved, puzzle.truth).all())
    moved.translation[2] += 30
    moved.rotation[4] = moved.rotation[4] @ plane_rotations(torch.tensor([0.2]))[0]
    expected = [True, True, False, True, False, True]
    assert right_outlines(puzzle.outlines, moved, puzzle.truth).tolist() == expected


def test_chance_is_spread_over_the_area_of_the_pieces() -> None:
    puzzle = boxes(200)
    poses = solve(puzzle, "random", seed=1).poses
    side = float(puzzle.outlines.areas.sum().sqrt())
    assert poses.translation.mean(0).tolist() == pytest.approx([side / 2, side / 2], rel=0.15)
    assert float(poses.rotation.mean(0).abs().max()) < 0.2
