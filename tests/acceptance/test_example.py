"""The example of `examples/airports`, run over a range as its README says, with and without a database.

`lifecycles-and-phases.md`, "Jobs & Lifecycles", "Dirtiness".
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pandas as pd
import psycopg
import pytest
from deltalake import DeltaTable
from sqlalchemy import make_url
from tests.commands import InProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "airports"
MONTHS = ["2022-01-01", "2022-02-01", "2022-03-01"]
RANGE = [f"month:start={MONTHS[0]}", f"month:end={MONTHS[-1]}"]
PREFIXES = {"EB": "BE", "ED": "DE", "EH": "NL", "EK": "DK", "EL": "LU", "LO": "AT", "LS": "CH"}


@pytest.fixture
def example(tmp_path: Path, session: SparkSession) -> InProcess:
    shutil.copytree(EXAMPLE, tmp_path / "airports", ignore=shutil.ignore_patterns("lake", ".lakewright"))
    return InProcess(tmp_path / "airports", session)


@pytest.fixture
def database(postgres_server: str) -> Iterator[dict[str, str]]:
    """The environment by which the example finds an empty database, as user `postgres`."""
    name, url = f"airports_{uuid4().hex}", make_url(postgres_server)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield {
            "AIRPORTS_DB_URL": f"jdbc:postgresql://{url.host}:{url.port}/{name}",
            "AIRPORTS_DB_PASSWORD": "not-to-be-seen",
        }
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def expected() -> list[tuple[str, str, int, int]]:
    """The summary by pandas: month, country, runways, and the longest in metres."""
    found = []
    for month in MONTHS:
        raw = pd.read_csv(EXAMPLE / "data" / "runways" / f"{month}.csv.gz")
        used = raw[(raw["closed"] == 0) & (raw["length_ft"] > 0)].copy()
        used["country"] = used["airport_ident"].str[:2].map(PREFIXES)
        used["metres"] = (used["length_ft"] * 0.3048).round().astype(int)
        for country, group in used.groupby("country"):
            found.append((month, str(country), len(group), int(group["metres"].max())))
    return sorted(found)


@pytest.mark.nightly
def test_the_example_runs_over_a_range_into_a_database(example: InProcess, database: dict[str, str]) -> None:
    command = ["job", "monthly", "verify", *RANGE, "-P", "database"]
    done = example.run(*command, **database)
    assert done.code == 0, done.all
    assert "not-to-be-seen" not in done.all
    url = make_url(database["AIRPORTS_DB_URL"].removeprefix("jdbc:"))
    query = "SELECT month::text, country, runways, longest_m, country_name FROM runway_summary ORDER BY 1, 2"
    with psycopg.connect(
        host=url.host, port=url.port, dbname=url.database, user="postgres", autocommit=True
    ) as connection:
        rows = connection.execute(query).fetchall()
        assert [row[:4] for row in rows] == expected()
        assert {row[4] for row in rows} >= {"Austria", "Netherlands"}
        again = example.run(*command[:2], "build", "-nl", *command[3:], **database)
        assert again.code == 0, again.all
        assert f"SUCCESS={len(MONTHS)} " in again.out, (
            "only the commands, whose condition holds\n" + again.all
        )
        assert connection.execute(query).fetchall() == rows
    plan = example.run("plan", *command[1:2], "build", *command[3:], "--detailed-exitcode", **database)
    assert plan.code == 3, plan.all

    destroyed = example.run("job", "monthly", "destroy", *RANGE, "-P", "database", "--yes", **database)
    assert destroyed.code == 0, destroyed.all
    assert not (example.folder / "lake" / "runways").exists()


@pytest.mark.nightly
def test_the_example_runs_without_a_database_and_its_own_tests_hold(example: InProcess) -> None:
    done = example.run("job", "monthly", "verify", *RANGE)
    assert done.code == 0, done.all
    found = DeltaTable(example.folder / "lake" / "summary").to_pandas()
    columns = [found["month"].astype(str), found["country"], found["runways"], found["longest_m"]]
    assert sorted(zip(*columns, strict=True)) == expected()
    page = (example.folder / "lake" / "documentation" / "index.html").read_text()
    assert "runways_located" in page
    clean = example.run("job", "monthly", "build", "-nl", *RANGE)
    assert clean.code == 0, clean.all
    assert "SUCCESS=0 " in clean.out
    tests = example.run("test")
    assert tests.code == 0, tests.all
