"""The examples of pages, run one after the other as a reader would, on the session of the tests.

A comment below an expression is its value.
"""

from __future__ import annotations

import ast
import csv
import gzip
import logging
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.commands import InProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"^```(yaml|python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


STORY = """
```yaml
# project.yml
name: world
modules: [model]
```

```yaml
# model/regions.yml
entities:
  regions: {key: code, strategy: merge, format: csv, deletes: snapshot, undo_window: 90d}
```

In March, somebody has cut all names after three letters.

```sh
lakewright demo airports --no-run
mkdir -p lake/bronze/regions
cp airports/data/regions/2022-0[12]-01.csv.gz lake/bronze/regions
lakewright process regions
zcat airports/data/regions/2022-03-01.csv.gz | sed -E '2,$ s/"([^"]{3})[^"]*","([A-Z]{2})","([A-Z]{2})"/"\\1","\\2","\\3"/' | gzip > lake/bronze/regions/2022-03-01.csv.gz
cp airports/data/regions/2022-04-01.csv.gz lake/bronze/regions
lakewright process regions
lakewright history row regions RO-B
lakewright history diff regions 2022-03-01.csv.gz -n 5
lakewright undo regions 2022-03-01.csv.gz --dry-run
lakewright undo regions 2022-03-01.csv.gz --yes --reason "names are cut off"
```

The corrected file arrives, and is applied in its place.

```sh
cp airports/data/regions/2022-03-01.csv.gz lake/bronze/regions
lakewright decide regions/2022-03-01.csv.gz take --reason "corrected"
lakewright apply regions
```

In June the regions get a history.

```sh
cp airports/later/regions/2022-0[56]-01.csv.gz lake/bronze/regions
lakewright process regions
sed -i.before 's/strategy: merge/strategy: historic/' model/regions.yml
lakewright rebuild regions --check
lakewright rebuild regions --yes --reason "regions have a history now"
lakewright doctor regions
lakewright history row regions RO-B
```
"""  # noqa: E501
"""A file with all regions of the world arrives on the first of each month; one is wrong."""


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((DOCS / page).read_text())


def expected(lines: list[str], node: ast.stmt) -> str | None:
    """Return the comment below a statement."""
    end = node.end_lineno or 0
    return lines[end].removeprefix("# ") if lines[end : end + 1] and lines[end].startswith("# ") else None


def run_python(text: str, names: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Run a block; yield the value of each expression that has a comment, and the comment."""
    for node in ast.parse(text).body:
        value = expected(text.splitlines(), node)
        if isinstance(node, ast.Expr) and value is not None:
            code = compile(ast.Expression(node.value), "<page>", "eval")
            yield repr(eval(code, names)), value
        else:
            exec(compile(ast.Module([node], []), "<page>", "exec"), names)


def run_shell(text: str, lakewright: InProcess) -> None:
    for line in filter(None, (line.partition(" #")[0].strip() for line in text.splitlines())):
        if line.startswith("lakewright "):
            done = lakewright.run(*shlex.split(line)[1:])
            assert done.code == 0, f"{line}\n{done.all}"
        else:
            subprocess.run(["bash", "-ec", line], check=True, cwd=lakewright.folder)


@pytest.fixture
def usual_logging() -> Iterator[None]:
    """Logging as it was: a page sets it up."""
    ours, root = logging.getLogger("lakewright"), logging.getLogger()
    before = ours.level, root.level, list(root.handlers)
    yield
    ours.setLevel(before[0])
    root.setLevel(before[1])
    root.handlers[:] = before[2]


@pytest.mark.nightly
# `land` warns of a processed slice that it replaces.
@pytest.mark.filterwarnings("ignore::lakewright.errors.LakewrightWarning")
@pytest.mark.usefixtures("usual_logging")
@pytest.mark.parametrize("page", ["python.md", "landing.md"])
def test_the_examples_of_a_page_do_what_they_say(page: str, spark: SparkSession, tmp_path: Path) -> None:
    """D2, D3."""
    names: dict[str, Any] = {"spark": spark}
    compared = 0
    with chdir(tmp_path):
        for language, text in blocks(page):
            if language == "yaml":
                file = tmp_path / text.partition("\n")[0].removeprefix("# ")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            elif language == "sh":
                run_shell(text, InProcess(tmp_path, spark))
            else:
                for found, value in run_python(text, names):
                    assert found == value, text
                    compared += 1
    assert compared > 1


@pytest.mark.nightly
def test_a_story_of_rewinds_and_of_history_before_the_first_slice_ends_as_it_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Issue 15: a month with a broken file is found, undone, corrected and processed again; then Historic."""
    lakewright = InProcess(tmp_path, spark)
    with chdir(tmp_path):
        for language, text in (*BLOCK.findall(STORY), *blocks("history-from.md")):
            if language == "yaml":
                file = tmp_path / text.partition("\n")[0].removeprefix("# ")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            else:
                run_shell(text, lakewright)
    expected = versions_of_regions(tmp_path / "lake" / "bronze" / "regions")
    days = "string(date(dlf_ValidFrom)) AS start, string(date(dlf_ValidTo)) AS end"
    found = lakewright.json("sql", f"SELECT code, name, {days} FROM regions.history", "-n", "10000")
    assert sorted(tuple(map(str, row.values())) for row in found) == sorted(expected)
    life = lakewright.json("history", "row", "regions", "RO-B")["versions"]
    assert [(each["values"]["name"], each["slice"]) for each in life] == [
        ("Bucureşti", "2022-01-01.csv.gz"),
        ("Bucureşti County", "2022-02-01.csv.gz"),
        ("Bucharest (municipality)", "2022-05-01.csv.gz"),
    ]
    life = lakewright.json("history", "row", "stock", "nut")["versions"]
    assert [(v["since"][:10], v["until"] and v["until"][:10], v["values"]["shelf"]) for v in life] == [
        ("2021-01-01", "2022-01-01", "1"),
        ("2022-01-01", None, "4"),
    ]
    life = lakewright.json("history", "row", "stock", "bolt")["versions"]
    assert [(v["since"][:10], v["slice"], v["origin"]) for v in life] == [
        ("2021-01-01", "stock/2021-01.csv", "history_from"),
        ("2021-02-01", "stock/2021-02.csv", "history_from"),
    ]


def versions_of_regions(folder: Path) -> list[tuple[str, str, str, str]]:
    """Return code, name, begin and end of each version of each region, from the files alone."""
    present: dict[str, tuple[str, dict[str, str]]] = {}
    versions = []
    for file in sorted(folder.iterdir()):
        day = file.name.removesuffix(".csv.gz")
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            rows = {row["code"]: row for row in csv.DictReader(lines)}
        for code in [code for code, (_, row) in present.items() if rows.get(code) != row]:
            start, row = present.pop(code)
            versions.append((code, row["name"], start, day))
        present |= {code: (day, row) for code, row in rows.items() if code not in present}
    return versions + [(code, row["name"], start, "None") for code, (start, row) in present.items()]
