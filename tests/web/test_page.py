"""The page in a real browser: correct, solve again, come back, download; uploads and samples; error messages."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import skimage.data
import torch
import trimesh
from browsing import DESKTOP, PHONE, choose, drag, drawn, middle, press, status, swipe, until, upload, width
from PIL import Image

from diffassemble.assembly.answer import Answer
from diffassemble.core import Placements
from diffassemble.io.archives import pack
from diffassemble.io.assemblies import read_assembly
from diffassemble.outlines.cut import cut_shape
from diffassemble.rendering.flat import Sheet, stage_around
from diffassemble.web import transfers
from diffassemble.web.server import Workbench
from diffassemble.web.session import Session


def cells(session: Session) -> list[int]:
    return session.puzzle.board.snap(session.now.poses)[0].tolist()


def at(session: Session, cell: int) -> int:
    """Which piece is in a cell."""
    return cells(session).index(cell)


def shown_by(workbench: Workbench, page: Any) -> Session:
    return workbench.sessions.find(page.url.split("/work/")[1].split("?")[0])


@pytest.mark.parametrize(("size", "by_hand"), [(DESKTOP, False), (PHONE, True)], ids=["mouse", "finger"])
def test_a_piece_is_dragged_to_another_cell(
    open_page: Callable[..., Any], session: Session, size: dict[str, Any], by_hand: bool
) -> None:
    page = open_page(session, **size)
    drawn(page)
    first, last = at(session, 0), at(session, 8)
    start, end = middle(page, first), middle(page, last)
    # Not quite there: it snaps, and the piece in the cell makes room.
    end = (end[0] - 9, end[1] - 9)
    swipe(page, (start, end)) if by_hand else drag(page, start, end)
    for words in ("row 3, column 3", "2 pieces moved by hand", "7 of 9 pieces are right"):
        status(page).get_by_text(words).wait_for()
    assert (cells(session)[first], cells(session)[last]) == (8, 0)
    press(page, "Undo")
    status(page).get_by_text("All 9 pieces are right").wait_for()
    assert cells(session)[first] == 0


def test_two_fingers_turn_a_piece_and_the_camera_zooms(open_page: Callable[..., Any], session: Session) -> None:
    page = open_page(session, **PHONE)
    drawn(page)
    number = at(session, 4)
    x, y = middle(page, number)
    # The second finger goes round the first one by a quarter, clockwise.
    swipe(page, ((x, y), (x, y)), ((x + 30, y), (x, y + 30)))
    status(page).get_by_text("row 2, column 2").wait_for()
    until(lambda: session.past[-1] is not session.now and session.now.moved_by_hand == [number])
    poses = session.answers[0].poses, session.now.poses
    given, turned = (int(session.puzzle.board.snap(one)[1][number]) for one in poses)
    assert (turned - given) % 4 == 1
    before = width(page, number)
    press(page, "Zoom in")
    until(lambda: width(page, number) > 1.2 * before)
    press(page, "Fit to the window")
    until(lambda: abs(width(page, number) - before) < 1)


def test_correct_lock_solve_undo_reload_turn_download(
    open_page: Callable[..., Any], session: Session, tmp_path: Path
) -> None:
    page = open_page(session)
    drawn(page)
    number = at(session, 4)
    turns = session.puzzle.board.snap(session.now.poses)[1].tolist()
    page.mouse.click(*middle(page, number))
    status(page).get_by_text("row 2, column 2").wait_for()
    page.keyboard.press("r")
    status(page).get_by_text(f"turned by {90 * ((turns[number] + 1) % 4)}°").wait_for()
    page.keyboard.press("ArrowLeft")
    status(page).get_by_text("row 2, column 1").wait_for()
    page.mouse.dblclick(*middle(page, number))
    status(page).get_by_text("locked: unlock it to move it").wait_for()
    held = middle(page, number)
    drag(page, held, (held[0] + 150, held[1]))
    assert cells(session)[number] == 3
    press(page, "Solve again")
    until(lambda: len(session.answers) == 2 and session.work is None)
    status(page).get_by_text("Solved in").wait_for()
    assert cells(session)[number] == 3
    assert bool(session.now.locked[number])
    # Undo goes back across the answer, and redo forth again.
    for name, answer in (("Undo", session.answers[0]), ("Redo", session.answers[1])):
        press(page, name)
        until(lambda answer=answer: session.now.answer is answer)
        assert bool(session.now.locked[number])
    places = session.now.poses.translation.clone()
    page.reload()
    drawn(page)
    page.locator(f"[data-piece='{number}'].locked").wait_for()
    assert torch.equal(session.now.poses.translation, places)
    press(page, "Turn the whole")
    until(lambda: not torch.equal(session.now.poses.translation, places))
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    assert torch.allclose(session.now.poses.translation, places @ turn.T, atol=1e-6)
    with page.expect_download() as download:
        press(page, "Everything (zip)")
    download.value.save_as(tmp_path / "result.zip")
    with zipfile.ZipFile(tmp_path / "result.zip") as archive:
        assert {"assembly.json", "assembled.png", "steps.gif", "report.html"} <= set(archive.namelist())
        archive.extract("assembly.json", tmp_path)
    assembly = read_assembly(tmp_path / "assembly.json", session.puzzle)
    assert torch.equal(assembly.poses.translation, session.now.poses.translation)
    records = json.loads((tmp_path / "assembly.json").read_text())["pieces"]
    assert [record.get("locked", False) for record in records] == session.now.locked.tolist()


def test_a_turned_picture_is_turned_upright(open_page: Callable[..., Any], session: Session, answer: Answer) -> None:
    session.begin(answer.turned(180), "coffee")
    page = open_page(session)
    status(page).get_by_text("All 9 pieces fit together, turned by 180°").wait_for()
    status(page).get_by_text("Press “Turn the whole”").wait_for()
    press(page, "Turn the whole")
    status(page).get_by_text("turned by 270°").wait_for()
    press(page, "Turn the whole")
    status(page).get_by_text("All 9 pieces are right").wait_for()


def test_boxes_lists_colours_steps_and_ghosts(open_page: Callable[..., Any], session: Session) -> None:
    page = open_page(session)
    drawn(page)
    (_, y), (x1, y1) = middle(page, at(session, 0)), middle(page, at(session, 4))
    page.keyboard.down("Shift")
    drag(page, (page.locator(".da-board").bounding_box()["x"] + 4, y), (x1 + 5, y1 + 5))
    page.keyboard.up("Shift")
    status(page).get_by_text(re.compile("[234] pieces selected")).wait_for()
    page.keyboard.press("Escape")
    page.get_by_text("Pieces", exact=True).click()
    name = session.puzzle.names[2]
    page.get_by_role("button", name=f"Hide {name}").click()
    page.locator("[data-piece='2']").wait_for(state="hidden")
    page.get_by_role("button", name=f"Show {name}").click()
    page.get_by_role("button", name=f"Hide {name}").wait_for()
    page.get_by_role("button", name=f"Lock {name}").click()
    page.locator("[data-piece='2'].locked").wait_for()
    page.get_by_role("switch", name="Confidence").click()
    page.get_by_text("doubtful", exact=True).wait_for()
    until(lambda: "rgb" in page.locator("[data-piece='2'] .tint").get_attribute("style"))
    page.get_by_role("switch", name="Ghost of the answer").click()
    page.locator(".ghosts[visibility=visible]").wait_for(state="attached")
    press(page, "Play the steps")
    page.get_by_text("now", exact=True).wait_for()


def test_a_sample_and_the_way_back(open_page: Callable[..., Any], session: Session) -> None:
    page = open_page(session)
    press(page, "New puzzle")
    page.get_by_role("button", name="Jigsaw with tabs").click()
    status(page).get_by_text("30 pieces").wait_for()
    drawn(page)
    before, (x, y) = middle(page, 3), middle(page, 3)
    drag(page, before, (x + 40, y + 25))
    until(lambda: abs(middle(page, 3)[0] - x - 40) < 3)
    press(page, "Undo")
    until(lambda: abs(middle(page, 3)[0] - x) < 1)
    press(page, "New puzzle")
    page.get_by_role("link", name="Go on with your earlier work").wait_for()


def test_a_broken_bowl_is_dragged_and_locked(open_page: Callable[..., Any], workbench: Workbench) -> None:
    page = open_page()
    page.get_by_role("button", name="Broken bowl").click()
    status(page).get_by_text("6 fragments").wait_for()
    session = shown_by(workbench, page)
    page.get_by_text("Pieces", exact=True).click()
    page.get_by_role("button", name=re.compile("Select ")).first.click()
    status(page).get_by_text("drag it, turn it, or lock it").wait_for()
    canvas = page.locator(".da-board canvas")
    canvas.focus()
    before = session.now.poses
    page.keyboard.press("ArrowRight")
    until(lambda: session.past)
    moved = (session.now.poses.translation - before.translation).norm(dim=1)
    assert int((moved > 1e-4).sum()) == 1
    number = int(moved.argmax())
    page.keyboard.press("r")
    until(lambda: len(session.past) == 2)
    assert float((session.now.poses.rotation[number] - before.rotation[number]).abs().max()) > 0.1
    # The mouse takes hold of what is in the middle of the largest fragment's picture.
    page.keyboard.press("Escape")
    box = canvas.bounding_box()
    grip(page, box)
    status(page).get_by_text("drag it, turn it, or lock it").wait_for()
    x, y = page.evaluate("window.daGrip")
    drag(page, (x, y), (x + 60, y))
    until(lambda: len(session.past) == 3)
    page.mouse.dblclick(x + 60, y)
    until(lambda: bool(session.now.locked.any()))
    status(page).get_by_text("locked: unlock it to move it").wait_for()


def grip(page: Any, box: dict[str, float]) -> None:
    """Click about until something is selected, and remember where."""
    for down in (0.5, 0.35, 0.65, 0.25, 0.75):
        for across in (0.5, 0.4, 0.6, 0.3, 0.7):
            x, y = box["x"] + across * box["width"], box["y"] + down * box["height"]
            page.mouse.click(x, y)
            page.wait_for_timeout(150)
            if page.get_by_text("drag it, turn it, or lock it").count():
                page.evaluate("([x, y]) => { window.daGrip = [x, y] }", [x, y])
                page.wait_for_timeout(450)
                return
    raise AssertionError("nothing there")


def test_a_jigsaw_piece_is_drawn_to_its_neighbours(
    open_page: Callable[..., Any], workbench: Workbench, photo: Path
) -> None:
    puzzle = cut_shape(str(photo), "tabs", 9, 1)
    session = workbench.sessions.new()
    session.begin(Answer(puzzle, Placements(puzzle.truth, torch.ones(len(puzzle))), (), "x", 1.0), "jigsaw")
    page = open_page(session)
    drawn(page)
    until(lambda: session.matches)
    x, y = middle(page, 4)
    drag(page, (x, y), (x + 200, y + 40))
    status(page).get_by_text("1 piece moved by hand").wait_for()
    page.get_by_role("switch", name="Ghost of the answer").click()
    page.locator(".ghosts[visibility=visible] [transform]").wait_for(state="attached")
    # Back again, not quite: where it fits is where it goes.
    until(lambda: abs(middle(page, 4)[0] - x - 200) < 3)
    page.mouse.move(x + 200, y + 40)
    page.mouse.down()
    page.mouse.move(x + 60, y)
    page.mouse.move(x + 7, y - 6)
    page.locator(".partner[visibility=visible]").wait_for(state="attached")
    page.mouse.up()
    until(lambda: len(session.past) == 3)
    off = (session.now.poses.translation[4] - puzzle.truth.translation[4]).norm()
    assert float(off) < 0.03 * float(puzzle.outlines.widths.mean())


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A photograph of loose jigsaw pieces on a plain table."""
    folder = tmp_path_factory.mktemp("sheet")
    # Nothing in it is as light as the table.
    Image.fromarray(skimage.data.chelsea()).save(folder / "cat.png")
    puzzle = cut_shape(str(folder / "cat.png"), "tabs", 12, 3, size=110)
    table = Sheet(puzzle)
    pieces, places = table.pieces, table.laid_out(1.4)
    stage = stage_around(pieces.placed_contours(places), 0.06)
    shown = torch.ones(len(pieces), dtype=torch.bool).numpy()
    table.blended(places, stage, shown).save(folder / "sheet.png")
    return folder / "sheet.png"


def test_from_a_photo_of_loose_pieces_to_the_plan(open_page: Callable[..., Any], sheet: Path, tmp_path: Path) -> None:
    page = open_page(**PHONE)
    upload(page, sheet)
    page.get_by_text("1 file: sheet.png").wait_for()
    choose(page, "What is it?", transfers.PHOTOS)
    press(page, "Open")
    status(page).get_by_text("12 pieces").wait_for()
    status(page).get_by_text("has every piece its outline?").wait_for()
    page.get_by_role("img", name="The photo with what was found").wait_for()
    press(page, "Solve")
    for words in ("Solved in", re.compile(r"1\d sure|All 12 pieces are sure")):
        status(page).get_by_text(words).wait_for()
    page.get_by_text("Plan and next joins").click()
    page.get_by_role("img", name="The plan").wait_for()
    page.get_by_text("The surest joins to make next").wait_for()
    with page.expect_download() as download:
        press(page, "Plan (PNG)")
    download.value.save_as(tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_uploads_that_are_refused_are_explained(
    open_page: Callable[..., Any], workbench: Workbench, photo: Path, tmp_path: Path
) -> None:
    box = trimesh.creation.box((0.4, 0.3, 0.2)).export(file_type="ply")
    broken = {
        "bomb.zip": (pack([("a.png", b"\0" * 30_000_000)]), "zip bomb"),
        "evil.zip": (pack([("../../evil.png", b"evil")]), "points outside of the zip file"),
        "picture.zip": (pack([("a.ply", photo.read_bytes()), ("b.ply", photo.read_bytes())]), "is no PLY file"),
        "lonely.ply": (box, "What was sent: has only 1 fragment"),
        "words.png": (b"not a picture", "is not a picture"),
    }
    page = open_page()
    for name, (content, message) in broken.items():
        (tmp_path / name).write_bytes(content)
        upload(page, tmp_path / name)
        page.get_by_text(f"1 file: {name}").wait_for()
        press(page, "Open")
        page.get_by_text(message).first.wait_for()
        press(page, "Start over")
        page.get_by_text(f"1 file: {name}").wait_for(state="hidden")
    homes = (tmp_path, workbench.sessions.home)
    assert [found for home in homes for found in (*home.rglob("evil.png"), *home.parent.glob("evil.png"))] == []
    for name in ("a.ply", "b.ply"):
        (tmp_path / name).write_bytes(box)
    upload(page, tmp_path / "a.ply", tmp_path / "b.ply")
    page.get_by_text("2 files: a.ply, b.ply").wait_for()
    press(page, "Open")
    status(page).get_by_text("2 fragments").wait_for()


def test_a_picture_is_cut_and_solving_can_be_cancelled_or_fail(open_page: Callable[..., Any], photo: Path) -> None:
    page = open_page()
    upload(page, photo)
    page.get_by_role("textbox", name="Rows x columns").fill("3x3")
    press(page, "Open")
    status(page).get_by_text("9 pieces, grid 3x3").wait_for()
    page.get_by_text("Solver settings").click()
    for solver, words in (("random", "10 %"), ("identity", "ZeroDivisionError: no luck today")):
        choose(page, "Solver", solver)
        press(page, "Solve")
        page.get_by_text(words).first.wait_for()
        if solver == "random":
            press(page, "Cancel")
            page.get_by_text("Cancelled").wait_for()
    for number, solver in enumerate(("gallagher", "huroyan"), 1):
        choose(page, "Solver", solver)
        press(page, "Solve" if number == 1 else "Solve again")
        status(page).get_by_text(f"solver: {solver if number == 1 else 'gathering'}").wait_for()
    choose(page, "Answer", "1: gallagher")
    status(page).get_by_text("solver: gallagher").wait_for()


def test_sessions_are_apart_and_work_ends_with_them(
    open_page: Callable[..., Any], workbench: Workbench, session: Session
) -> None:
    mine, page = open_page(session), open_page()
    other = shown_by(workbench, page)
    assert other is not session
    assert not other.folder.exists()
    assert "coffee" not in page.locator("body").inner_text()
    session.settings.solver = "random"
    press(mine, "Solve again")
    until(lambda: session.work is not None and session.work.poses is not None)
    mine.context.close()
    until(lambda: session.pages == 0)
    workbench.sessions.retire(0.0)
    until(lambda: session.work is None)
    assert session.name not in workbench.sessions.open
    # It comes back from its folder.
    assert workbench.sessions.find(session.name).answers


def test_work_is_forgotten_when_that_is_asked_for(open_page: Callable[..., Any], session: Session) -> None:
    page = open_page(session)
    drawn(page)
    address = page.url
    press(page, "Forget my work")
    press(page, "Forget")
    page.get_by_text("Or try a sample").wait_for()
    assert not session.folder.exists()
    page.goto(address)
    page.get_by_text("This work is no longer here").wait_for()


UNNAMED = re.compile(r"^\s*- (button|textbox|slider|combobox|switch|checkbox|spinbutton|link)(\s*\[[^\]]*\])*:?\s*$")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_everything_has_a_name_and_fits(open_page: Callable[..., Any], session: Session, size: dict[str, Any]) -> None:
    """For screen readers; and nothing is wider than the screen."""
    start = open_page(**size)
    start.get_by_text("Or try a sample").wait_for()
    page = open_page(session, **size)
    drawn(page)
    page.get_by_text("Pieces", exact=True).click()
    page.get_by_text("Solver settings").click()
    page.get_by_role("button", name=f"Lock {session.puzzle.names[0]}").wait_for()
    for shown in (start, page):
        lines = shown.locator("body").aria_snapshot().splitlines()
        assert [line for line in lines if UNNAMED.match(line)] == []
        assert shown.evaluate("document.documentElement.scrollWidth") <= size["viewport"]["width"]
        assert shown.evaluate("document.documentElement.lang").startswith("en")
