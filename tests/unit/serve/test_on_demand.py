"""A command that had to start Spark by itself leaves a server behind, if the project asks for it."""

from __future__ import annotations

import io
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.projects import make_project

from lakewright.app import App
from lakewright.cli.call import Call
from lakewright.cli.options import Settings
from lakewright.cli.output import Output
from lakewright.serve.server_files import ServerFiles
from lakewright.spark.resident import AttachedSession
from lakewright.spark.session import OwnSession


@dataclass
class Begun:
    commands: list[list[str]] = field(default_factory=list)

    def __call__(self, command: list[str], **_: Any) -> Any:
        self.commands.append(command[3:])
        return SimpleNamespace(pid=1, returncode=None)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Begun:
    begun = Begun()
    monkeypatch.setattr(subprocess, "Popen", begun)
    return begun


def close(folder: Path, *, asked: str, is_started: bool = True, **change: Any) -> None:
    """Open a project, perhaps start Spark, and end the command."""
    folder.mkdir(exist_ok=True)
    basedir = make_project(folder, f"config: {{lakewright.serve: {asked}}}").basedir
    environ: dict[str, str] = change.pop("environ", {})
    sessions = change.pop("sessions", OwnSession())
    settings = Settings(project=basedir, **change)
    call = Call(
        Output(io.StringIO(), io.StringIO()), environ, io.StringIO(), settings=settings, leaves_server=True
    )
    app = App.open(basedir, environ=environ, sessions=sessions)
    app.__dict__["lake"] = SimpleNamespace(is_started=is_started, stop=lambda: None)
    call._app = app
    call.close()


def test_a_server_is_started_for_the_next_commands(tmp_path: Path, begun: Begun) -> None:
    close(tmp_path, asked="auto", profiles=("fast",), definitions={"a": "b"})
    ((*at, serve, on_demand),) = begun.commands
    assert [serve, on_demand] == ["serve", "--on-demand"]
    assert at == ["--project", str(tmp_path), "-P", "fast", "-D", "a=b"]


def test_no_server_is_started_where_none_is_wanted_or_one_runs(tmp_path: Path, begun: Begun) -> None:
    close(tmp_path / "a", asked="never")
    close(tmp_path / "b", asked="auto", is_started=False)
    close(tmp_path / "c", asked="auto", is_alone=True)
    close(tmp_path / "d", asked="auto", environ={"LAKEWRIGHT_NO_SERVE": "1"})
    close(tmp_path / "e", asked="auto", sessions=AttachedSession(lambda: None, tmp_path))
    with ServerFiles(tmp_path / "f").locked():
        close(tmp_path / "f", asked="auto")
    assert begun.commands == []
