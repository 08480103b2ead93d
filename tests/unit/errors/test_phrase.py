"""Commands in texts are values: they are written by surfaces, and never cut out of a sentence."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakewright
from lakewright.errors import Fault, Location
from lakewright.errors.fault import remedy_of
from lakewright.errors.phrase import Command, Option, Phrase, Placeholder, ShellLine

SOURCES = Path(lakewright.__file__).parent
REBUILD = Command("rebuild", "my orders", "--include", "d'1")
TEXT = Phrase("Put it there: ", REBUILD, ".\nOr give ", Option("--late"), ".")


def test_a_shell_reads_the_words_of_a_command_as_they_are() -> None:
    assert shlex.split(REBUILD) == ["lakewright", *REBUILD.argv]
    assert Command("job", "a", Placeholder("day=<day>")) == "lakewright job a day=<day>"


def test_a_phrase_is_its_plain_text() -> None:
    assert f"Put it there: `{REBUILD}`.\nOr give --late." == TEXT
    assert json.loads(json.dumps({"remedy": TEXT})) == {"remedy": str(TEXT)}


@pytest.mark.parametrize("made", [REBUILD, TEXT, Option("-D", "definitions={}"), Phrase()])
def test_copies_keep_the_parts(made: str) -> None:
    for again in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert (type(again), again) == (type(made), made)
        assert getattr(again, "parts", None) == getattr(made, "parts", None)
        assert getattr(again, "argv", None) == getattr(made, "argv", None)


def test_phrases_keep_their_commands_when_they_are_put_together() -> None:
    listed = Phrase.joined(", then ", [Command("status"), ShellLine("mv a b")])
    whole = "First " + Phrase(listed, "; ", TEXT) + "."
    assert [part for part in whole.parts if isinstance(part, ShellLine)] == [
        Command("status"),
        ShellLine("mv a b"),
        REBUILD,
    ]
    assert whole == f"First `lakewright status`, then `mv a b`; {TEXT}."


def test_the_lines_of_a_phrase_keep_their_commands() -> None:
    first, second = TEXT.lines()
    assert (first, second) == tuple(TEXT.splitlines())
    assert (first.parts[1], second.parts[1]) == (REBUILD, "--late")


def test_a_first_letter_is_changed_in_place() -> None:
    assert Phrase("type ", REBUILD).capitalized().parts == ("Type ", REBUILD)
    assert Phrase(REBUILD).capitalized() == Phrase(REBUILD)


def test_a_recorded_remedy_has_its_commands_again() -> None:
    remedy = Phrase("Type ", Command("job", "a", Placeholder("day=<day>")), ", or ", ShellLine("mv a b"))
    recorded = json.loads(json.dumps(Fault("no", remedy=remedy).as_record()))
    read = remedy_of(recorded)
    assert isinstance(read, Phrase)
    assert (read, read.parts[1]) == (remedy, Command("job", "a", Placeholder("day=<day>")))
    assert remedy_of({**recorded, "remedy": "Type ***"}) == "Type ***"
    assert remedy_of(Fault("no", remedy="Stop.").as_record()) == "Stop."
    assert remedy_of(Fault("no").as_record()) is None


def test_the_text_of_a_fault_has_the_commands_of_its_remedy() -> None:
    fault = Fault("no", Location("a.yml", 3), TEXT).and_also(Fault("odd", remedy=Phrase(Command("status"))))
    assert isinstance(fault.phrase, Phrase)
    commands = [part for part in fault.phrase.parts if isinstance(part, Command)]
    assert commands == [REBUILD, Command("status")]
    assert str(fault) == fault.phrase


def _sentences(word: str) -> Iterator[tuple[str, str]]:
    """Yield the places and texts of all literals, but those of docstrings and of the help of commands.

    Files that lack a word are left out.
    """
    for file in sorted(SOURCES.rglob("*.py")):
        source = file.read_text()
        if word not in source:
            continue
        tree = ast.parse(source)
        left_out = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                left_out.add(id(node.value))
            if isinstance(node, ast.keyword) and node.arg in ("help", "description", "examples"):
                left_out |= {id(each) for each in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
                yield f"{file.relative_to(SOURCES)}:{node.lineno}", node.value


def test_no_sentence_has_a_command_written_into_it() -> None:
    assert [place for place, text in _sentences("lakewright ") if "`lakewright " in text] == []
