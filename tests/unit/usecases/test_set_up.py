"""B6, B7: what a machine needs before the first run, and what `setup` prepares."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from lakewright.errors import NotInstalled
from lakewright.spark.jars import fetch_jars, missing_jars
from lakewright.spark.releases import Jar
from lakewright.usecases.diagnose import machine_checks, set_up

JARS = tuple(Jar("g", name, "1", hashlib.sha256(name.encode()).hexdigest()) for name in "ab")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    for jar in JARS:
        place = tmp_path / "maven" / "g" / jar.artifact / "1" / jar.name
        place.parent.mkdir(parents=True)
        place.write_text(jar.artifact)
    mirror = (tmp_path / "maven").as_uri()
    return {"LAKEWRIGHT_CACHE": str(tmp_path / "cache"), "LAKEWRIGHT_MAVEN_URL": mirror}


class Machine:
    """A machine whose archive is made, or isn't."""

    def __init__(self, archive: Path, ends: int = 0) -> None:
        self.archive, self.ends = archive, ends

    def run(self, command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        assert command[-1] == "lakewright.spark.warmup"
        if not self.ends:
            self.archive.write_text("classes")
        return subprocess.CompletedProcess(command, self.ends, "", "there is no PySpark\nInstall it.\n")


def prepared(environ: dict[str, str], machine: Machine) -> Any:
    place = "lakewright.usecases.diagnose"
    with (
        mock.patch(f"{place}.find_java"),
        mock.patch(f"{place}.archive_path", return_value=machine.archive),
        mock.patch(f"{place}.missing_jars", lambda folder, _: missing_jars(folder, JARS)),
        mock.patch(f"{place}.fetch_jars", lambda given, _: fetch_jars(given, JARS)),
        mock.patch(f"{place}.subprocess.run", machine.run),
    ):
        return set_up(environ)


def test_jars_are_fetched_and_the_archive_is_made_once(tmp_path: Path, environ: dict[str, str]) -> None:
    machine = Machine(tmp_path / "classes.jsa")
    machine.archive.with_suffix(".vain").touch()
    first = prepared(environ, machine)
    assert (first.fetched, first.archive, first.is_new) == (2, machine.archive, True)
    assert not machine.archive.with_suffix(".vain").exists()
    second = prepared(environ, machine)
    assert (second.fetched, second.archive, second.is_new) == (0, machine.archive, False)


def test_what_keeps_the_archive_from_being_made_is_an_error(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(NotInstalled, match="there is no PySpark") as caught:
        prepared(environ, Machine(tmp_path / "classes.jsa", ends=1))
    assert caught.value.remedy == "Install it."


def test_jars_that_the_first_run_fetches_are_no_fault(tmp_path: Path) -> None:
    """B6: right after an install nothing is wrong."""
    checks = {each.name: each for each in machine_checks({"LAKEWRIGHT_CACHE": str(tmp_path)})}
    assert checks["jars"].is_ok
    assert "the first run, or `lakewright setup`, fetches 7 of 7" in checks["jars"].message
    assert "lakewright.spark.jars" not in str(checks["jars"])
