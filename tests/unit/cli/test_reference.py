"""The page of all commands."""

from __future__ import annotations

from pathlib import Path

from lakewright.cli.reference import reference

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "commands.md"


def test_the_page_of_all_commands_is_up_to_date() -> None:
    assert PAGE.read_text() == reference(), (
        "run: python -m lakewright.cli.reference > docs/reference/commands.md"
    )
