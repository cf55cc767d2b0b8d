"""The controls beside the scene: what there is, in which order, and in which words."""

from __future__ import annotations

from collections.abc import Sequence

import viser

from diffassemble.web.transfers import ANIMATION, DOCUMENT, KINDS, WHOLE, ZIP, suggested_grid

PRIVATE = "Everything stays on this computer: nothing is sent anywhere."
DEFAULT = "default"
NO_ANSWER = "none yet"
SELECT_HINT = "Click a piece to move, turn or lock it."
MANY = "Many pieces: pack them into one zip file, or send them one after the other as *pieces or fragments*."
_LISTED = 12


def collected_text(names: Sequence[str]) -> str:
    """Which single pieces were sent: all of them if they are few, else the last ones."""
    if not names:
        return MANY
    listed = ", ".join(f"`{name}`" for name in names[-_LISTED:])
    return f"{len(names)} {'piece' if len(names) == 1 else 'pieces'} so far: {'… ' * (len(names) > _LISTED)}{listed}"


class Panel:
    """All controls of one browser, in the order of the work."""

    def __init__(self, gui: viser.GuiApi, solvers: list[str], models: list[str]) -> None:
        self.status = gui.add_markdown("Welcome.")
        self.progress = gui.add_progress_bar(0.0)
        with gui.add_folder("1 Upload"):
            self.kind = gui.add_dropdown("what it is", KINDS)
            self.grid = gui.add_text("grid", suggested_grid(KINDS[0]), hint="rows x columns; empty: found out")
            self.upload = gui.add_upload_button("Upload", hint="a picture, a mesh (PLY, OBJ, STL, GLB) or a zip file")
            self.collected = gui.add_markdown(MANY)
            self.use_collected = gui.add_button("Use the pieces sent so far", visible=False)
            self.discard_collected = gui.add_button(
                "Start over", visible=False, color="gray", hint="forget those pieces"
            )
        with gui.add_folder("2 Solve and watch"):
            self.solver = gui.add_dropdown("solver", (DEFAULT, *solvers))
            with gui.add_folder("settings", expand_by_default=False):
                self.model = gui.add_dropdown("model", (DEFAULT, *models))
                self.samples = gui.add_slider("samples", 1, 16, 1, 8, hint="answers to draw, to keep the best")
                self.seed = gui.add_number("seed", 0, min=0, step=1)
            self.solve = gui.add_button("Solve", color="blue")
            self.cancel = gui.add_button("Cancel", visible=False, color="red")
            self.step = gui.add_slider("step", 0, 1, 1, 0, hint="how the answer came about, step by step")
            self.play = gui.add_button("Play / pause", color="gray")
            self.view = gui.add_button("Look straight at it", color="gray", hint="drag beside it to look around")
        with gui.add_folder("3 Inspect"):
            self.answer = gui.add_dropdown("answer", (NO_ANSWER,), hint="compare what solvers gave")
            self.confidence = gui.add_checkbox("colour by confidence", False, hint="red: doubtful, blue: sure")
        with gui.add_folder("4 Correct"):
            self.piece = gui.add_markdown(SELECT_HINT)
            self.lock = gui.add_button("Lock / unlock", disabled=True)
            self.turn = gui.add_button("Turn clockwise", disabled=True)
            self.undo = gui.add_button("Undo", disabled=True)
        with gui.add_folder("5 Download"):
            self.downloads = {
                ZIP: gui.add_button("Download everything (zip)", color="green"),
                WHOLE: gui.add_button("Picture or model (PNG, GLB)"),
                DOCUMENT: gui.add_button("assembly.json"),
                ANIMATION: gui.add_button("Animation (GIF)"),
            }
        gui.add_markdown(PRIVATE)

    def suggest_grid(self) -> None:
        """Write the usual grid into its field, or nothing where the grid can be found out."""
        self.grid.value = suggested_grid(str(self.kind.value))
