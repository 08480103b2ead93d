"""Lines, trees and tables, and how they reach a stream that is no terminal, or is one."""

from __future__ import annotations

import io
import json
import os
import re
from unittest import mock

import pytest
from tests.unit.cli.surroundings import Screen

from lakewright.cli.output import Output
from lakewright.cli.page import Line, Span, Table, line, plain, printable, whole
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.redaction import Redactor

TREE = line("month=2022-01", below=(line("BUILD", below=(line(Span("FAILED", "red"), " regions"),)),))
TABLE = Table(("run", "status"), ((line("r1"), line("SUCCESS")), (line("a longer one"), line("FAILED"))))


def test_a_tree_is_indented() -> None:
    assert list(plain(TREE)) == ["month=2022-01", "  BUILD", "    FAILED regions"]


def test_columns_of_a_table_are_aligned() -> None:
    assert list(plain(TABLE)) == ["run           status", "r1            SUCCESS", "a longer one  FAILED"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("café ☕ 北京", "café ☕ 北京"),
        ("a\nDone. SUCCESS=1", "a\\nDone. SUCCESS=1"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("\x9b2J", "\\x9b2J"),
        ("evil\u202etxt", "evil\\u202etxt"),
        ("two\u2028lines", "two\\u2028lines"),
    ],
)
def test_what_would_move_the_cursor_or_forge_a_line_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert str(line("x ", text)) == f"x {shown}"


def test_without_a_terminal_there_is_no_style() -> None:
    output = Output(io.StringIO(), io.StringIO())
    output.page([TREE, TABLE])
    assert "\x1b" not in output.out.getvalue()  # type: ignore[attr-defined] # a StringIO


@pytest.mark.parametrize(
    ("environ", "is_coloured"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_a_terminal_gets_colours_unless_told_otherwise(environ: dict[str, str], is_coloured: bool) -> None:
    screen = Screen()
    Output(screen, Screen(), environ).page([TREE])
    assert ("\x1b[" in screen.getvalue()) == is_coloured


def test_markup_in_names_is_only_text() -> None:
    screen = Screen()
    Output(screen, Screen(), {"TERM": "xterm"}).page([line("[bold]x[/bold] :smile:")])
    assert "[bold]x[/bold] :smile:" in screen.getvalue()


def test_secrets_are_taken_out_of_pages_and_documents() -> None:
    out, err = io.StringIO(), io.StringIO()
    output = Output(out, err, redactor=Redactor(frozenset({"s3cr3t-value"})))
    output.page([line("uses s3cr3t-value"), line("s3cr3t-value")])
    output.note("also s3cr3t-value")
    output.document({"url": ["jdbc:pg://me:pw@db", "s3cr3t-value"]})
    assert "s3cr3t-value" not in out.getvalue() + err.getvalue()
    assert "me:pw" not in out.getvalue()


COMMAND = Command(
    "manifest", "resolve", "file:///lake/bronze/people/2022-01-01.csv", "--reason", "sent again"
)
LONG = line("FAILED", below=(line("error: no", below=(line("do: ", Phrase(COMMAND, " makes it ready")),)),))


def drawn(width: int, *blocks: Line | Table) -> list[str]:
    screen = Screen()
    with mock.patch.dict(os.environ, {"COLUMNS": str(width), "TERM": "xterm"}):
        Output(screen, Screen(), {"TERM": "xterm", "COLUMNS": str(width)}).page(blocks)
    return re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue()).splitlines()


def test_a_command_is_never_broken_and_stands_alone_where_its_line_is_too_long() -> None:
    """C1: what is to be copied is one line without the guides of the tree."""
    shown = drawn(60, LONG)
    assert shown[-1] == COMMAND
    assert shown[-2] == "    └── do: `lakewright manifest resolve …` makes it ready"
    assert drawn(160, LONG)[-1] == f"    └── do: `{COMMAND}` makes it ready"


def test_lines_in_a_tree_are_wrapped_at_spaces_below_its_guides() -> None:
    path = "/a/very/long/path/that/is/longer/than/the/terminal/is/wide"
    tree = line("x", below=(line(f"some words and {path} and more"), line("y")))
    assert drawn(40, tree) == ["x", "├── some words and", f"│   {path}", "│   and more", "└── y"]


def test_a_table_that_is_too_wide_moves_its_last_columns_below_each_row() -> None:
    """C1: neither words nor ids are split."""
    rows = tuple((line("failed"), line("people"), line(f"id-{n}-of-a-long-item"), line("")) for n in (1, 2))
    table = Table(("verdict", "entity", "item", "note"), rows)
    assert drawn(60, table)[1] == "failed   people  id-1-of-a-long-item"
    assert drawn(30, table) == [
        "verdict  entity",
        "failed   people",
        "  item: id-1-of-a-long-item",
        "failed   people",
        "  item: id-2-of-a-long-item",
    ]


def test_a_whole_line_is_not_wrapped() -> None:
    assert drawn(20, whole(COMMAND)) == [COMMAND]


def test_a_secret_that_is_a_key_of_a_document_hides_no_key() -> None:
    """E9."""
    out = io.StringIO()
    output = Output(
        out, io.StringIO(), schema="lakewright/test/1", redactor=Redactor.of({"PASSWORD": "status"})
    )
    output.document({"status": "the word is status", "runs": [{"status": "status"}]})
    assert json.loads(out.getvalue()) == {
        "schema": "lakewright/test/1",
        "status": "the word is ***",
        "runs": [{"status": "***"}],
    }
