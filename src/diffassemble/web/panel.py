"""The controls beside the scene: what there is, in which order, and in which words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import viser
from viser._gui_handles import GuiProgressBarHandle

from diffassemble.web.uploads import KINDS, usual_grid

PRIVATE = "Everything stays on this computer: nothing is sent anywhere."
USUAL = "the usual one"
NONE_YET = "none yet"
_LISTED = 12
MANY = "Many pieces: pack them into one zip file, or send them one after the other as *pieces or fragments*."


@dataclass(frozen=True)
class Panel:
    """Handles of all controls."""

    status: viser.GuiMarkdownHandle
    progress: GuiProgressBarHandle
    kind: viser.GuiDropdownHandle
    grid: viser.GuiTextHandle
    upload: viser.GuiUploadButtonHandle
    pile: viser.GuiMarkdownHandle
    collected: viser.GuiButtonHandle
    restart: viser.GuiButtonHandle
    solver: viser.GuiDropdownHandle
    model: viser.GuiDropdownHandle
    samples: viser.GuiSliderHandle
    seed: viser.GuiNumberHandle
    solve: viser.GuiButtonHandle
    cancel: viser.GuiButtonHandle
    moment: viser.GuiSliderHandle
    play: viser.GuiButtonHandle
    view: viser.GuiButtonHandle
    answer: viser.GuiDropdownHandle
    confidence: viser.GuiCheckboxHandle
    piece: viser.GuiMarkdownHandle
    lock: viser.GuiButtonHandle
    turn: viser.GuiButtonHandle
    undo: viser.GuiButtonHandle
    everything: viser.GuiButtonHandle
    picture: viser.GuiButtonHandle
    document: viser.GuiButtonHandle
    animation: viser.GuiButtonHandle


def pile_text(names: Sequence[str]) -> str:
    """What is said of the single pieces that were sent: all of them if they are few, else the last ones."""
    if not names:
        return MANY
    listed = ", ".join(f"`{name}`" for name in names[-_LISTED:])
    return f"{len(names)} {'piece' if len(names) == 1 else 'pieces'} so far: {'… ' * (len(names) > _LISTED)}{listed}"


def build_panel(gui: viser.GuiApi, solvers: list[str], models: list[str]) -> Panel:
    """Lay out the controls of one browser."""
    parts: dict[str, object] = {"status": gui.add_markdown("Welcome."), "progress": gui.add_progress_bar(0.0)}
    with gui.add_folder("1 Bring"):
        parts |= _bring(gui)
    with gui.add_folder("2 Solve and watch"):
        parts |= _solve(gui, solvers, models) | _watch(gui)
    with gui.add_folder("3 Judge"):
        parts["answer"] = gui.add_dropdown("answer", (NONE_YET,), hint="compare what solvers gave")
        parts["confidence"] = gui.add_checkbox("colour by confidence", False, hint="red: doubtful, blue: sure")
    with gui.add_folder("4 Correct"):
        parts |= _correct(gui)
    with gui.add_folder("5 Take home"):
        parts["everything"] = gui.add_button("Download everything (zip)", color="green")
        parts["picture"] = gui.add_button("Picture or model (PNG, GLB)")
        parts["document"] = gui.add_button("assembly.json")
        parts["animation"] = gui.add_button("Animation (GIF)")
    gui.add_markdown(PRIVATE)
    return Panel(**parts)


def _bring(gui: viser.GuiApi) -> dict[str, object]:
    return {
        "kind": gui.add_dropdown("what it is", KINDS),
        "grid": gui.add_text("grid", usual_grid(KINDS[0]), hint="rows x columns; empty: found out from the pieces"),
        "upload": gui.add_upload_button("Upload", hint="a picture, a mesh (PLY, OBJ, STL, GLB) or a zip of many"),
        "pile": gui.add_markdown(MANY),
        "collected": gui.add_button("Use the pieces sent so far", visible=False),
        "restart": gui.add_button("Start over", visible=False, color="gray", hint="forget the pieces sent so far"),
    }


def _solve(gui: viser.GuiApi, solvers: list[str], models: list[str]) -> dict[str, object]:
    parts: dict[str, object] = {"solver": gui.add_dropdown("solver", (USUAL, *solvers))}
    with gui.add_folder("settings", expand_by_default=False):
        parts["model"] = gui.add_dropdown("model", (USUAL, *models))
        parts["samples"] = gui.add_slider("samples", 1, 16, 1, 8, hint="answers to draw, to keep the best")
        parts["seed"] = gui.add_number("seed", 0, min=0, step=1)
    parts["solve"] = gui.add_button("Solve", color="blue")
    parts["cancel"] = gui.add_button("Cancel", visible=False, color="red")
    return parts


def _watch(gui: viser.GuiApi) -> dict[str, object]:
    return {
        "moment": gui.add_slider("moment", 0, 1, 1, 0, hint="how the answer came about, step by step"),
        "play": gui.add_button("Play / pause", color="gray"),
        "view": gui.add_button(
            "Look straight at it", color="gray", hint="drag beside the pieces to look from elsewhere"
        ),
    }


def _correct(gui: viser.GuiApi) -> dict[str, object]:
    return {
        "piece": gui.add_markdown("Click a piece to move, turn or lock it."),
        "lock": gui.add_button("Lock / unlock", disabled=True),
        "turn": gui.add_button("Turn clockwise", disabled=True),
        "undo": gui.add_button("Undo", disabled=True),
    }
