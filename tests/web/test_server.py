"""The page in a real browser: bring, solve, take home; several people at once; whatever is uploaded, it lives on."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from browsing import choose, press, upload

from diffassemble.core import Mesh
from diffassemble.files.archives import pack
from diffassemble.files.assemblies import read_assembly
from diffassemble.files.meshes import mesh_bytes
from diffassemble.files.puzzles import write_puzzle
from diffassemble.fragments.breaking import scatter
from diffassemble.squares.photo import cut_image
from diffassemble.web import server
from diffassemble.web import uploads as bringing
from diffassemble.web.server import Workbench
from diffassemble.web.session import Visit
from diffassemble.web.uploads import PHOTO, PIECES


def box(side: float) -> Mesh:
    corners = torch.tensor([[x, y, z] for x in (0.0, side) for y in (0.0, 1.0) for z in (0.0, 1.0)])
    faces = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]]
    faces += [[2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
    return Mesh(corners, torch.tensor(faces))


def test_opens_on_an_example_that_moves(page: Any, own: Visit, bench: Workbench) -> None:
    assert "Everything stays on this computer" in page.locator("body").inner_text()
    assert bench.address.startswith("http://127.0.0.1:")
    moments = set()
    for _ in range(20):
        moments.add(own.panel.moment.value)
        time.sleep(0.1)
    assert len(moments) > 2


def test_a_photo_is_cut_solved_and_taken_home(page: Any, own: Visit, photo: Path, tmp_path: Path) -> None:
    upload(page, photo)
    page.get_by_text("16 pieces, grid 4x4").wait_for()
    press(page, "Solve")
    page.get_by_text("16 of 16 pieces right").wait_for()
    with page.expect_download() as download:
        press(page, "Download everything (zip)")
    download.value.save_as(tmp_path / "result.zip")
    with zipfile.ZipFile(tmp_path / "result.zip") as archive:
        assert {"assembly.json", "assembled.png", "steps.gif"} <= set(archive.namelist())
        archive.extract("assembly.json", tmp_path)
    assembly = read_assembly(tmp_path / "assembly.json", own.work.puzzle)
    assert torch.equal(assembly.poses.translation, own.answers[0].poses.translation)
    assert len(json.loads((tmp_path / "assembly.json").read_text())["pieces"]) == 16


def test_pieces_are_sent_one_after_the_other(page: Any, own: Visit, photo: Path, tmp_path: Path) -> None:
    write_puzzle(cut_image(photo, 2, 2, size=32), tmp_path / "puzzle")
    pieces = sorted((tmp_path / "puzzle" / "pieces").iterdir())
    choose(page, PHOTO, PIECES)
    page.locator("input[value='4x4']").first.wait_for(state="detached")
    upload(page, pieces[0])
    page.get_by_text("1 piece so far").wait_for()
    press(page, "Start over")
    page.get_by_text("Many pieces: pack them").wait_for()
    for count, piece in enumerate(pieces, 1):
        upload(page, piece)
        page.get_by_text(f"{count} piece{'s' * (count > 1)} so far").wait_for()
    press(page, "Use the pieces sent so far")
    page.get_by_text("4 pieces, grid 2x2").wait_for()
    page.get_by_text("Many pieces: pack them").wait_for()
    assert own.work.puzzle.names == tuple(path.name for path in pieces)
    assert not list(own.sent.iterdir())
    choose(page, PIECES, PHOTO)
    page.locator("input[value='4x4']").first.wait_for()


def test_fragments_are_seen_moving(page: Any, own: Visit, tmp_path: Path) -> None:
    puzzle = scatter([box(1.0), box(0.5), box(0.7)], torch.Generator().manual_seed(0), points=200)
    files = [
        (f"{name}.ply", mesh_bytes(mesh, ".ply")) for name, mesh in zip("abc", puzzle.fragments.meshes, strict=True)
    ]
    (tmp_path / "bowl.zip").write_bytes(pack(files))
    upload(page, tmp_path / "bowl.zip")
    page.get_by_text("3 pieces; press").wait_for()
    before = own.work.stage.nodes[0].position.copy()
    choose(page, "the usual one", "huroyan")
    press(page, "Solve")
    page.get_by_text("0 of 3 pieces with a confidence").wait_for()
    assert (own.work.stage.nodes[0].position != before).any()
    assert len(own.shown.history) == 20
    choose(page, "huroyan", "the usual one")


def test_two_browsers_at_once_and_one_is_closed(
    visit: Callable[[], Any], page: Any, own: Visit, bench: Workbench, photo: Path, room: Path
) -> None:
    other = visit()
    guest = list(bench.visits.values())[-1]
    assert guest is not own
    choose(other, "the usual one", "random")
    press(other, "Solve")
    other.get_by_text("solving: 10 %").wait_for()
    job = guest.job
    assert guest.folder.parent == own.folder.parent == room
    upload(page, photo)
    page.get_by_text("16 pieces, grid 4x4").wait_for()
    assert "solving" in other.locator("body").inner_text()
    assert "16 pieces" not in other.locator("body").inner_text()
    other.context.close()
    began = time.monotonic()
    while (job._process.is_alive() or guest.folder.exists()) and time.monotonic() < began + 30:
        time.sleep(0.1)
    assert guest.closed
    assert not job._process.is_alive()
    assert not guest.folder.exists()
    assert own.folder.exists()


def test_cancelling(page: Any, own: Visit, photo: Path) -> None:
    upload(page, photo)
    page.get_by_text("16 pieces, grid 4x4").wait_for()
    choose(page, "the usual one", "random")
    press(page, "Solve")
    page.get_by_text("solving: 10 %").wait_for()
    press(page, "Cancel")
    page.get_by_text("cancelled").wait_for()
    assert own.job is None
    choose(page, "random", "the usual one")


def evil_zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("../../evil.png", b"evil")
    return buffer.getvalue()


def test_broken_uploads_are_explained(page: Any, photo: Path, tmp_path: Path, room: Path) -> None:
    broken = {
        "bomb.zip": (pack([("a.png", b"\0" * 30_000_000)]), "zip bomb"),
        "evil.zip": (evil_zip(), "points outside of the zip file"),
        "many.zip": (pack([(f"{number}.png", b"") for number in range(5000)]), "has 5000 files"),
        "picture.zip": (pack([("a.ply", photo.read_bytes()), ("b.ply", photo.read_bytes())]), "is no PLY file"),
        "cut.jpg": (photo.read_bytes()[:3000], "broken or cut short"),
        "words.png": (b"not a picture", "is not a picture"),
    }
    for name, (content, message) in broken.items():
        (tmp_path / name).write_bytes(content)
        upload(page, tmp_path / name)
        page.get_by_text(message).first.wait_for()
    upload(page, photo)
    page.get_by_text("16 pieces, grid 4x4").wait_for()
    page.screenshot(path=str(tmp_path / "alive.png"))
    assert not list(room.rglob("evil*"))
    assert not (tmp_path / "evil.png").exists()


def test_uploads_beyond_the_limit_are_refused_at_once(
    page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_BYTES", 1_000_000)
    monkeypatch.setattr(bringing, "MOST_BYTES", 1_000_000)
    (tmp_path / "huge.png").write_bytes(b"\0" * 3_000_000)
    upload(page, tmp_path / "huge.png")
    page.get_by_text("has 3 MB, at most 1 MB are taken").first.wait_for()


def test_a_solver_that_raises(page: Any, photo: Path) -> None:
    upload(page, photo)
    page.get_by_text("16 pieces, grid 4x4").wait_for()
    choose(page, "the usual one", "identity")
    press(page, "Solve")
    page.get_by_text("the solver failed: ZeroDivisionError: no luck today").first.wait_for()
    page.locator("input[value='none yet']").first.wait_for()
    choose(page, "identity", "gallagher")
    press(page, "Solve")
    page.locator("input[value='1: gallagher']").first.wait_for()
    choose(page, "gallagher", "the usual one")


def test_nothing_can_be_shared_through_others(bench: Workbench) -> None:
    assert bench.server.request_share_url() is None
