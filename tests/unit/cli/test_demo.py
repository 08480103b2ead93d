"""`init`, `demo` and `doctor`, without a run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.documents import checked
from tests.unit.cli.surroundings import FakeApp, call_with, ended, failing, plan_of, result_of, step

from lakewright.errors import Fault, NotInstalled, SpecError, UsageError
from lakewright.plan.phase import Phase
from lakewright.plan.status import Planned, Status


def test_init_writes_a_project_and_says_how_to_run_it(tmp_path: Path) -> None:
    folder = tmp_path / "my lake"
    answered = call_with(FakeApp(), "init", str(folder))
    assert answered.code == 0
    assert (folder / "project.yml").exists()
    assert f"lakewright apply --project {shlex.quote(str(folder))}" in answered.out
    assert "has this project already" in call_with(FakeApp(), "init", str(folder)).out


class TestDemo:
    def clean(self) -> FakeApp:
        return FakeApp(planned=plan_of(step(status=Planned.CLEAN), months=("1", "2", "3", "4")))

    def dirty(self, status: Status = Status.SUCCESS) -> FakeApp:
        error = Fault("broken") if status.is_failure else None
        return FakeApp(planned=plan_of(step()), result=result_of(ended(status=status, error=error)))

    def test_it_writes_the_project_and_runs_four_months(self, tmp_path: Path) -> None:
        answered = call_with(self.dirty(), "demo", str(tmp_path / "lake"))
        assert answered.code == 0
        assert (tmp_path / "lake" / "project.yml").exists()
        planned, run = answered.app.asked
        assert (planned.phase, run.phase) == (Phase.BUILD, Phase.VERIFY)
        assert run.arguments == ("month:start=2022-01-01", "month:end=2022-04-01")
        assert answered.app.settings.project == tmp_path / "lake"
        assert "files written" in answered.err
        assert answered.last_line.startswith("Done. ")

    def test_where_all_is_clean_it_runs_nothing_and_says_so(self, tmp_path: Path) -> None:
        answered = call_with(self.clean(), "demo", str(tmp_path / "lake"))
        assert answered.code == 0
        assert answered.out.startswith("Everything is clean: 1 target in 4 months, checked in ")
        assert len(answered.app.asked) == 1

    def test_what_it_names_next_can_be_pasted(self, tmp_path: Path) -> None:
        folder = tmp_path / "a lake's"
        said = call_with(self.clean(), "demo", str(folder)).out
        named = [text.strip() for text in said.splitlines() if text.strip().startswith("lakewright ")]
        assert len(named) == 5
        assert all(str(folder) in shlex.split(text) for text in named)

    def test_after_a_failure_it_names_nothing_next(self, tmp_path: Path) -> None:
        answered = call_with(self.dirty(Status.FAILED), "demo", str(tmp_path / "lake"))
        assert answered.code == 1
        assert "next" not in answered.out

    def test_a_folder_of_something_else_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "notes").touch()
        assert call_with(self.clean(), "demo", str(tmp_path)).code == 2
        assert [path.name for path in tmp_path.iterdir()] == ["notes"]

    def test_under_json_it_prints_one_document(self, tmp_path: Path) -> None:
        answered = call_with(self.clean(), "demo", str(tmp_path / "lake"), "-o", "json")
        found = checked(json.loads(answered.out))
        assert (found["folder"], found["outcome"]["status"]) == (str(tmp_path / "lake"), "CLEAN")


class TestDoctor:
    def checks(self, out: str) -> dict[str, dict[str, Any]]:
        return {check["name"]: check for check in json.loads(out)["checks"]}

    @pytest.mark.parametrize(
        ("error", "is_ok", "part"),
        [
            (UsageError("there is no project.yml"), None, "none here"),
            (SpecError([Fault("one"), Fault("two")]), False, "2 errors"),
        ],
    )
    def test_it_goes_on_without_a_project(self, error: Exception, is_ok: bool | None, part: str) -> None:
        assert isinstance(error, UsageError | SpecError)
        answered = call_with(FakeApp(), "doctor", "-o", "json", opening=failing(error))
        found = self.checks(answered.out)
        assert found["Python"]["ok"] is True
        assert found["project"]["ok"] is is_ok
        assert part in found["project"]["message"]

    def test_each_lack_comes_with_a_remedy_and_fails(self, tmp_path: Path) -> None:
        environ = {"LAKEWRIGHT_CACHE": str(tmp_path)}
        lack = mock.patch(
            "lakewright.usecases.diagnose.find_java", side_effect=NotInstalled("no Java", remedy="Get one.")
        )
        with lack:
            answered = call_with(FakeApp(), "doctor", environ=environ, opening=failing(UsageError("none")))
        assert answered.code == 1
        lines = answered.out.splitlines()
        position = next(n for n, text in enumerate(lines) if text.startswith("NOT OK  Java"))
        assert lines[position + 1].startswith("  do: ")


def test_a_folder_that_can_not_be_made_is_an_error_in_words(tmp_path: Path) -> None:
    """B8: no raw OSError."""
    (tmp_path / "file").write_text("")
    answered = call_with(FakeApp(), "init", str(tmp_path / "file" / "x"))
    assert answered.code == 2
    assert "Not a directory" in answered.err
    assert "do: Name a place" in answered.err
    assert "OSError" not in answered.err
    assert "NotADirectoryError" not in answered.err
