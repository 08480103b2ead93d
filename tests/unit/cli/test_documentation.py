"""`lakewright docs`, without Spark: what is written where, and what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from tests.unit.cli.surroundings import FakeApp, call_with
from tests.unit.cli.test_project import MODEL, document, lakewright
from tests.unit.documentation.documents import make_document

from lakewright.errors import SpecError
from lakewright.usecases.document_project import Documentation


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project.yml").write_text("name: small\nmodules: [model.yml]\n")
    (tmp_path / "model.yml").write_text(MODEL)
    return tmp_path


class Documented(FakeApp):
    """Has a documentation with a failed check and a broken one."""

    def document(self, *arguments: object, is_offline: bool) -> Documentation:
        self.asked.append((*arguments, is_offline))
        if self.error is not None:
            raise self.error
        return Documentation(make_document(), (Path("/lake/pages/index.html"), Path("/lake/pages/all.md")))


def test_a_page_is_written_without_spark_and_makes_no_manifest(project: Path) -> None:
    found = document(project, "docs", "--no-checks")
    page = project / "generated-documentation" / "index.html"
    assert found == {
        "project": "small",
        "files": [str(page)],
        "checks": 0,
        "checks_failed": 0,
        "failed": [],
    }
    text = page.read_text()
    assert "What arrives" in text
    assert "hush-hush" not in text
    assert not (project / ".lakewright").exists()


def test_names_come_from_the_job_that_is_named(project: Path) -> None:
    answered = lakewright(project, "docs", "daily", "day=2022-03-04", "--no-checks")
    assert answered.out.splitlines()[-1].endswith(" items, 0 failed")
    assert "2022-03-04" in (project / "generated-documentation" / "index.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("dialy",), "did you mean 'daily'?"),
        (("daily", "dya=2022-01-01"), "dya"),
        (("daily", "day=soon"), "soon"),
    ],
)
def test_a_wrong_job_or_argument_is_wrong_usage_and_nothing_is_written(
    project: Path, arguments: tuple[str, ...], said: str
) -> None:
    answered = lakewright(project, "docs", *arguments, "--no-checks")
    assert answered.code == 2
    assert said in answered.err
    assert not (project / "generated-documentation").exists()


def test_failed_checks_are_listed_and_end_with_1() -> None:
    answered = call_with(Documented(), "docs")
    assert answered.code == 1
    assert "failed relation prices: price is between 0 and 100 plain: 2 failed" in answered.out
    assert "written: /lake/pages/index.html" in answered.out
    assert answered.last_line == "6 items, 3 checks run, 2 failed"
    found = json.loads(call_with(Documented(), "docs", "-o", "json").out)
    assert (found["checks"], found["checks_failed"], len(found["failed"])) == (3, 2, 2)


def test_the_first_page_is_opened_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(click, "launch", opened.append)
    call_with(Documented(), "docs")
    assert opened == []
    call_with(Documented(), "docs", "--open")
    assert opened == ["/lake/pages/index.html"]


def test_what_was_typed_is_what_is_asked_for() -> None:
    app: Any = Documented()
    call_with(app, "docs", "daily", "day=2022-01-01", "--no-checks")
    assert app.asked == [("daily", ("day=2022-01-01",), True)]


def test_settings_that_are_wrong_are_wrong_usage() -> None:
    answered = call_with(Documented(error=SpecError.of("generators: unknown kind")), "docs")
    assert (answered.code, answered.out) == (2, "")
    assert "generators: unknown kind" in answered.err
