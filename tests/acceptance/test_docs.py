"""The commands of the documentation do what it shows.

In a block of console, lines after `$` are typed, those after `>` go on with them, others are printed. `…`
stands for anything, and a line of it alone for any lines.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.acceptance.command import Done, Lakewright
from tests.commands import InProcess, Screen
from tests.unit.docs.pages import blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```console\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass
class Typed:
    """A command, and the lines that it is shown to print."""

    command: str
    shown: list[str] = field(default_factory=list)

    def missing(self, printed: str) -> list[str]:
        """Return the shown lines that aren't printed, or not in that order."""
        lines = iter([_squeezed(line) for line in printed.splitlines()])
        expected = [line for line in self.shown if line.strip() != "…"]
        return [line for line in expected if not any(_pattern(line).fullmatch(found) for found in lines)]


def _squeezed(line: str) -> str:
    return " ".join(line.split())


def _pattern(shown: str) -> re.Pattern[str]:
    parts = [re.escape(part) for part in _squeezed(shown).split("…")]
    return re.compile(".*".join(parts).replace(r"\ .*", r"\ ?.*"))


def typed_in(page: Path) -> Iterator[Typed]:
    for block in BLOCK.finditer(page.read_text()):
        commands: list[Typed] = []
        for line in block["text"].splitlines():
            if line.startswith("$ "):
                commands.append(Typed(line[2:]))
            elif line.startswith("> "):
                commands[-1].command += "\n" + line[2:]
            else:
                commands[-1].shown.append(line)
        yield from commands


def run(folder: Path, line: str, session: SparkSession) -> Done:
    """Return how a typed line ended; what isn't one plain `lakewright` command is left to a shell."""
    joined = line.replace("\\\n", " ")
    signs = shlex.shlex(joined, posix=True, punctuation_chars=True)
    words = shlex.split(joined)
    if words[0] == "lakewright" and not any(set(sign) <= set("();<>|&") for sign in signs):
        # What a page shows is what a terminal shows, but for colours.
        return InProcess(folder, session, make_out=Screen).run(*words[1:], NO_COLOR="1", COLUMNS="1000")
    return Lakewright(folder).shell(line)


def type_out(pages: Sequence[Path], folder: Path, session: SparkSession) -> None:
    """Type the commands of pages in a folder; fail if one does not print what is shown."""
    for page in pages:
        for typed in typed_in(page):
            if typed.command.startswith("cd "):
                folder = folder / typed.command.removeprefix("cd ")
                continue
            done = run(folder, typed.command, session)
            assert typed.missing(done.out) == [], f"$ {typed.command}\n{done.all}"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_quickstart(tmp_path: Path, session: SparkSession) -> None:
    type_out((DOCS / "quickstart.md",), tmp_path, session)


@pytest.mark.nightly  # the test above types the commands of another page
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_tutorial(tmp_path: Path, session: SparkSession) -> None:
    page = DOCS / "tutorial.md"
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "project.yml").write_text(next(blocks(page, "yaml")))
    type_out((page,), tmp_path, session)
