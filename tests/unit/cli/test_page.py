"""Lines, trees and tables, and how they reach a stream that is no terminal, or is one."""

from __future__ import annotations

import io

import pytest
from tests.unit.cli.surroundings import Screen

from lakewright.cli.output import Output
from lakewright.cli.page import Branch, Span, Table, line, plain, printable
from lakewright.manifest.redact import Redactor

TREE = Branch(
    line("month=2022-01"), (Branch(line("BUILD"), (Branch(line(Span("FAILED", "red"), " regions")),)),)
)
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
    output.page([line("uses s3cr3t-value"), Branch(line("s3cr3t-value"))])
    output.note("also s3cr3t-value")
    output.document({"url": ["jdbc:pg://me:pw@db", "s3cr3t-value"]})
    assert "s3cr3t-value" not in out.getvalue() + err.getvalue()
    assert "me:pw" not in out.getvalue()
