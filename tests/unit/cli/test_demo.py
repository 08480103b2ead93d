"""`init`, `demo` and `doctor`, without a run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.documents import checked
from tests.unit.cli.surroundings import FakeApp, call_with, failing

from lakewright.due.plan import Plan
from lakewright.errors import Fault, NotInstalled, SpecError, UsageError


def test_init_writes_a_project_and_says_how_to_run_it(tmp_path: Path) -> None:
    folder = tmp_path / "my lake"
    answered = call_with(FakeApp(), "init", str(folder))
    assert answered.code == 0
    assert (folder / "project.yml").exists()
    assert f"lakewright apply --project {shlex.quote(str(folder))}" in answered.out
    assert "has this project already" in call_with(FakeApp(), "init", str(folder)).out


class TestDemo:
    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Where a demo is written of whose project nothing is due."""
        monkeypatch.setattr("lakewright.usecases.due.take.plan_of_project", lambda *_: Plan())
        return tmp_path / "a lake's"

    def test_it_writes_the_project_and_says_how_to_run_it(self, tmp_path: Path) -> None:
        answered = call_with(FakeApp(), "demo", str(tmp_path / "lake"), "--no-run")
        assert answered.code == 0
        assert (tmp_path / "lake" / "project.yml").exists()
        assert "files written" in answered.err
        assert f"lakewright apply --project {tmp_path}/lake" in answered.out

    def test_where_nothing_is_due_it_runs_nothing_and_says_so(self, folder: Path) -> None:
        answered = call_with(FakeApp(), "demo", str(folder))
        assert answered.code == 0
        assert answered.app.settings.project == folder
        assert answered.out.startswith("Nothing is due; that took ")
        assert answered.app.asked == []

    def test_what_it_names_next_can_be_pasted(self, folder: Path) -> None:
        said = call_with(FakeApp(), "demo", str(folder)).out
        named = [text.strip() for text in said.splitlines() if text.strip().startswith("lakewright ")]
        assert len(named) == 4
        assert all(str(folder) in shlex.split(text) for text in named)

    def test_a_folder_of_something_else_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "notes").touch()
        assert call_with(FakeApp(), "demo", str(tmp_path)).code == 2
        assert [path.name for path in tmp_path.iterdir()] == ["notes"]

    def test_under_json_it_prints_one_document(self, folder: Path) -> None:
        answered = call_with(FakeApp(), "demo", str(folder), "-o", "json")
        found = checked(json.loads(answered.out))
        assert (found["folder"], found["outcome"]["left"]["steps"]) == (str(folder), [])


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
