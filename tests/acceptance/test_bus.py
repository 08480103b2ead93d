"""The example of `examples/bus`, typed as its README shows it: `processing-manifest.md`, "Use cases"."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url
from tests.acceptance.test_docs import run, typed_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "bus.md"
STEPS = ROOT / "examples" / "bus" / "README.md"


@pytest.fixture
def database(postgres_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty database, which the loader finds by its environment."""
    name = f"shop_{uuid4().hex}"
    url = make_url(postgres_server).set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        monkeypatch.setenv("SHOP_DB", url)
        yield url
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.mark.nightly  # tests/unit/cli/test_bus.py has the same commands with other programs
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_example_of_the_bus_does_what_it_shows(
    tmp_path: Path, session: SparkSession, database: str
) -> None:
    folder = tmp_path / "bus"
    shutil.copytree(ROOT / "examples" / "bus", folder, ignore=shutil.ignore_patterns("lake", ".lakewright"))
    for typed in (*typed_in(STEPS), *typed_in(PAGE)):
        done = run(folder, typed.command, session)
        assert typed.missing(done.out) == [], f"$ {typed.command}\n{done.all}"
    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT id, customer, amount::text FROM orders ORDER BY id").fetchall()
    # What the report says is what the database has: four rows, none of the skipped slice.
    assert rows == [(1, "Ada", "12.50"), (2, "Grace", "4.20"), (3, "Ada", "7.00"), (5, "Emmy", "8.00")]


def test_the_python_of_the_page_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    with chdir(tmp_path):
        exec(code, {})
