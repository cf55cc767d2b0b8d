"""Results on broken objects for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from diffassemble.evaluation.fragment_benchmark import FragmentRow
from diffassemble.evaluation.fragment_comparison import FragmentComparison, FragmentLine
from diffassemble.evaluation.fragment_scores import Group, PieceGroup

_CAPTION = (
    "Mean over classes of class means, and below the plain mean over objects. R: RMSE of Euler angles, geod.: geodesic "
    "error (its median over objects below), both in degrees (chance: R 86, geod. 126). T: RMSE of translation × 100. "
    "PA: percent of pieces at their place (Chamfer distance < 0.01), rest: without the largest piece. All right: "
    "percent of objects. CD: Chamfer distance of the shape × 1000. Anchor largest: the whole is moved such that its "
    "largest piece stands at its true pose; none: poses as answered."
)
_GROUPS = (
    "Percent of pieces at their place, RMSE of Euler angles in degrees below: by pieces that the object broke into, "
    "by the piece's share of the object's area, and by how sure the solver was of it."
)
_BESIDE = (
    "R in degrees, T × 100, PA in percent; means over classes, ± deviation over seeds. Ours: measured here, all rows "
    "on the same objects. Quoted: from other objects and machines. garf (anchor): the largest piece's pose is given."
)
_NUMBERS = ("count", "R", "geod.", "T", "PA", "PA\nrest", "all\nright", "CD", "cost")


def fragment_results_table(rows: Sequence[FragmentRow]) -> Table:
    """Two lines per row, class means over plain means; fits 80 columns."""
    table = _table(caption=_CAPTION)
    table.add_column("solver", no_wrap=True)
    table.add_column("objects", overflow="fold")
    for heading in _NUMBERS:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row))
    return table


def fragment_groups_table(rows: Sequence[FragmentRow]) -> Table:
    """Where the solvers are good and where not."""
    table = _table(caption=_GROUPS)
    table.add_column("solver", no_wrap=True)
    table.add_column("objects", overflow="fold")
    kinds = (("pieces", "by_pieces"), ("area", "by_size"), ("sure", "by_confidence"))
    columns = [
        (kind, name)
        for _, kind in kinds
        for name in dict.fromkeys(group.name for row in rows for group in getattr(row, kind))
    ]
    heading = {kind: word for word, kind in kinds}
    for kind, name in columns:
        table.add_column(f"{heading[kind]}\n{name}", justify="right", no_wrap=True)
    for row in rows:
        found = {(kind, group.name): group for _, kind in kinds for group in getattr(row, kind)}
        table.add_row(row.solver, describe(row), *(_group(found.get(column)) for column in columns))
    return table


def fragment_comparison_table(comparison: FragmentComparison, *, explained: bool = True) -> Table:
    """Methods down; R, T and PA across, ours and the quoted figures side by side. `explained` tells what they are."""
    missing = f", {comparison.missing:.0%} missing" if comparison.missing else ""
    rows = [line.ours for line in comparison.lines if line.ours is not None]
    measured = f"ours: {rows[0].objects} fractures of {comparison.data}" if rows else "nothing measured"
    table = _table(caption=_BESIDE if explained else "", show_edge=False)
    table.title = f"{comparison.title}{missing}; {measured}, anchor {comparison.anchor}"
    table.title_justify = "left"
    table.add_column("method", no_wrap=True)
    for figure in ("R", "T", "PA"):
        for source in ("ours", "quoted"):
            table.add_column(f"{figure}\n{source}", justify="right", no_wrap=True)
    table.add_column("geodesic\nours", justify="right", no_wrap=True)
    for line in comparison.lines:
        table.add_row(line.method, *_beside(line, comparison.digits))
    return table


def describe(row: FragmentRow) -> str:
    """What a row was measured on."""
    words = [f"anchor {row.anchor}"]
    words += [f"{row.missing:.0%} missing"] if row.missing else []
    words += [f"{row.noise:.1%} noise"] if row.noise else []
    words += [f"{row.points} points"] if row.points else []
    return f"{row.data}\n{', '.join(words)}"


def _table(*, caption: str, show_edge: bool = True) -> Table:
    return Table(
        box=SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
        pad_edge=False,
        show_edge=show_edge,
        caption=caption,
        caption_justify="left",
    )


def _cells(row: FragmentRow) -> list[str]:
    plain = row.plain
    return [
        row.solver,
        describe(row),
        f"{row.objects}\n" + (f"×{row.seeds}" if row.seeds > 1 else ""),
        f"{row.rmse_r:.1f}\n{plain.rmse_r:.1f}",
        f"{row.geodesic:.1f}\n{plain.geodesic_median:.1f}",
        f"{row.rmse_t:.1f}\n{plain.rmse_t:.1f}",
        f"{row.part_accuracy:.1f}\n{plain.part_accuracy:.1f}",
        f"{row.part_accuracy_rest:.1f}\n{plain.part_accuracy_rest:.1f}",
        f"{row.all_right:.1f}\n{plain.all_right:.1f}",
        f"{row.chamfer:.1f}\n{plain.chamfer:.1f}",
        f"{row.seconds_per_object:.2f} s\n{row.peak_mb:.0f} MB",
    ]


def _group(group: Group | PieceGroup | None) -> str:
    if group is None:
        return ""
    means = group.figures if isinstance(group, Group) else group
    return f"{means.part_accuracy:.1f}\n{means.rmse_r:.1f}°"


def _beside(line: FragmentLine, digits: int) -> list[str]:
    cells = []
    for name in ("rmse_r", "rmse_t", "part_accuracy"):
        cells.append("" if line.ours is None else _ours(line.ours, name))
        cells.append("" if line.quoted is None else f"{getattr(line.quoted, name):.{digits}f}")
    return [*cells, "" if line.ours is None else _ours(line.ours, "geodesic")]


def _ours(row: FragmentRow, name: str) -> str:
    spread = "" if row.deviation is None else f" ±{getattr(row.deviation, name):.1f}"
    return f"{getattr(row, name):.1f}{spread}"
