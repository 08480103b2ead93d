"""Whole commands on the small project that `init` writes: what is printed, where, and what they exit with.

Rules of the command line; `lifecycles-and-phases.md`, "Jobs & Lifecycles".
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from tests.acceptance.command import Lakewright
from tests.commands import InProcess, Watched
from tests.people import write_people

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BUILD = ("job", "daily", "build")


@pytest.fixture
def people(tmp_path: Path, session: SparkSession) -> InProcess:
    return InProcess(write_people(tmp_path / "a lake"), session)


def deliver(people: InProcess, name: str, *rows: str) -> Path:
    file = people.folder / "lake" / "bronze" / "people" / f"{name}.csv"
    file.write_text("\n".join(["id,name,born,city", *rows, ""]))
    return file


@pytest.mark.nightly
def test_from_the_first_job_to_destroy(people: InProcess) -> None:
    """The first command has a process of its own; the others share a session."""
    first = Lakewright(people.folder).run("job", "daily", "verify")
    assert first.code == 0, first.all
    assert first.out.rstrip().splitlines()[-1].startswith("Done. SUCCESS=")
    assert "2022-01-01.csv merge 3 records: 3 inserted" in first.out

    deliver(people, "2022-02-01", "1,Ada,1815-12-10,Rome", "4,Grace,1906-12-09,New York")
    assert people.run("plan", "daily", "build", "--detailed-exitcode").code == 3
    processed = people.json("process", "people")
    assert [(s["slice"], s["inserted"], s["changed"]) for s in processed["slices"]] == [
        ("2022-02-01.csv", 1, 1)
    ]
    assert people.run("plan", "daily", "build", "--detailed-exitcode").code == 0

    rows = people.json("sql", "SELECT id, city, dlf_lastSeen FROM people WHERE id < 3 ORDER BY id")
    assert [(row["id"], row["city"]) for row in rows] == [(1, "Rome"), (2, "Clermont-Ferrand")]
    assert all(row["dlf_lastSeen"].endswith("Z") for row in rows)
    assert people.run("sql", "DROP TABLE people").code == 2

    refused = people.run("job", "daily", "destroy")
    assert refused.code == 2, refused.all
    assert "people" in refused.err
    assert DeltaTable.is_deltatable(str(people.folder / "lake" / "silver" / "people"))
    assert people.run("job", "daily", "destroy", "--dry-run").code == 0
    destroyed = people.run("job", "daily", "destroy", "--yes", "-o", "json")
    assert destroyed.code == 0, destroyed.all
    assert json.loads(destroyed.out)["status"] == "SUCCESS"
    assert not (people.folder / "lake" / "silver" / "people").exists()


def test_a_failed_slice_is_on_the_first_page_with_the_command_that_mends_it(
    tmp_path: Path, either: SparkSession
) -> None:
    people = InProcess(write_people(tmp_path / "a lake"), either)
    deliver(people, "2022-01-01", "1,Ada,1815-12-10,London", "1,Ada,1815-12-10,Paris")
    failed = people.run(*BUILD, "-o", "json")
    assert failed.code == 1, failed.all
    json.loads(failed.out)
    assert people.run(*BUILD).code == 4

    page = people.run("status").out
    command = next(text for text in page.splitlines() if "decide people/" in text).split("`")[1]
    assert Lakewright(people.folder).shell(command).code == 0
    deliver(people, "2022-01-01", "1,Ada,1815-12-10,London")
    assert people.run("apply").code == 0
    assert people.run("status").out.startswith("Plan. NEEDS_YOU=0 DUE=0 WAITS=0")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.nightly)]
)
def test_a_signal_stops_a_job_that_a_later_run_ends(
    people: InProcess, number: signal.Signals, code: int
) -> None:
    deliver(people, "2022-02-01", "2,Blaise,1623-06-19,Paris")
    ended, said = stopped_while_building(people, number)
    assert ended == code, said
    assert "Done. " in said
    verdicts = {item["verdict"] for item in people.json("manifest", "ls")}
    assert verdicts <= {"ready", "processed"}

    again = people.run(*BUILD)
    assert again.code == 0, again.all
    assert {item["verdict"] for item in people.json("manifest", "ls")} == {"processed"}


def stopped_while_building(people: InProcess, number: signal.Signals) -> tuple[int, str]:
    """Return how a forced build ended that got a signal as soon as it began with its target."""
    err = Watched("BUILD people started", partial(os.kill, os.getpid(), number))
    done = replace(people, make_err=lambda: err).run(*BUILD, "--force", "-v")
    return done.code, done.all
