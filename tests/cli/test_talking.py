"""People read words, programs read lines; they never get in each other's way."""

from __future__ import annotations

import json

import pytest

from diffassemble.cli.inputs import Talk


def test_words_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    talk = Talk()
    talk.say("hello")
    talk.event("step", done=0.5)
    assert capsys.readouterr().out == "hello\n"


def test_lines_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    talk = Talk(lines=True)
    talk.say("hello")
    talk.event("step", done=0.5)
    seen = capsys.readouterr()
    assert seen.err == "hello\n"
    line = json.loads(seen.out)
    assert (line["event"], line["done"]) == ("step", 0.5)


def test_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    Talk(document=True).answer(b'{"a": 1}\n')
    assert capsys.readouterr().out == '{"a": 1}\n'
    Talk(lines=True, document=True).answer(b'{"a": 1}\n')
    assert json.loads(capsys.readouterr().out)["assembly"] == {"a": 1}
