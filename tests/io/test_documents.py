"""Documents give the same bytes for the same fields, foreign ones are refused, grids are read as people write them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diffassemble.core import Board, InputError
from diffassemble.io.documents import board_field, document_bytes, field, parse_grid, read_document

FOREIGN = {
    b"": "is empty",
    b"{": "is not JSON",
    b"\xff\xfe\x00": "is not JSON",
    b"[" * 100_000: "is not JSON",
    b"[1, 2]": "not written by diffassemble",
    b'{"name": "other program"}': "not written by diffassemble",
    b'{"schema": 2, "kind": "image"}': "reads schema 1",
    b'{"schema": 1, "kind": "mesh"}': "kind 'mesh'",
    b'{"schema": [1]}': "reads schema 1",
}


def test_documents_are_plain_json_with_records_on_lines_of_their_own() -> None:
    fields = {"unit": 0.1, "ä": [None, True, []], "pieces": [{"a": 1}, {"a": 2}]}
    content = document_bytes(fields, "squares")
    assert json.loads(content) == {"schema": 1, "kind": "image", **fields}
    assert content == document_bytes(fields, "squares")
    assert content.isascii()
    assert content.decode().splitlines()[-4:-2] == ['    {"a": 1},', '    {"a": 2}']
    with pytest.raises(ValueError, match="not JSON compliant"):
        document_bytes({"x": float("nan")}, "squares")


def test_foreign_documents(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for content, words in FOREIGN.items():
        path.write_bytes(content)
        with pytest.raises(InputError) as caught:
            read_document(path, ("squares",))
        assert str(caught.value).startswith(str(path))
        assert words in str(caught.value)
    with pytest.raises(InputError, match="No such file"):
        read_document(tmp_path / "none.json", ("squares",))


def test_fields_of_another_kind() -> None:
    for value, kind in ((True, int), (1.5, int), ("1", int), (None, int), (1, str), ({}, list), ("x" * 99, float)):
        with pytest.raises(InputError, match=r"x\.json: 'key' must be"):
            field({"key": value}, "key", kind, Path("x.json"))
        with pytest.raises(InputError, match="'key' must be a text"):
            field(["key"], "key", str, Path("x.json"))
    assert field({"key": 1}, "key", float, Path("x.json")) == 1.0
    assert board_field({"rows": 3, "cols": 4}, Path("x.json")) == Board(3, 4)
    for rows, cols in [(0, 4), (3, -1), (10**5, 10**5)]:
        with pytest.raises(InputError, match="make no board"):
            board_field({"rows": rows, "cols": cols}, Path("x.json"))


@settings(max_examples=50)
@given(st.integers(1, 999), st.integers(1, 999), st.sampled_from("xX×"), st.text())
def test_grids_are_rows_and_columns_and_anything_else_is_refused(rows: int, cols: int, x: str, text: str) -> None:
    assert parse_grid(f"{rows}{x}{cols}") == Board(rows, cols)
    assert parse_grid(f" {rows} ") == Board(rows, rows)
    try:
        assert parse_grid(text).cells >= 1
    except InputError as error:
        assert "such as 6x6 or 4x7" in str(error)  # noqa: PT017
