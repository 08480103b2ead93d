"""A project whose Spark is a server of Spark Connect does not use the JVM of `lakewright serve`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakewright.cli.options import Settings
from lakewright.cli.warm import _open
from lakewright.spark.connect import ConnectSessions
from lakewright.spark.resident import AttachedSession


@pytest.mark.parametrize(("master", "is_attached"), [("sc://host:15002", False), ("local[2]", True)])
def test_sessions_are_those_of_the_projects_server(tmp_path: Path, master: str, is_attached: bool) -> None:
    (tmp_path / "project.yml").write_text(f'name: shop\ncluster: {{master: "{master}"}}\n')
    attached = AttachedSession(lambda: None, Path.cwd())
    settings = Settings(project=tmp_path)
    app = _open(settings, dict(os.environ), print, arguments=(), attached=attached, due={})
    assert (app.sessions is attached, app.lake.sessions is attached) == (is_attached, is_attached)
    assert isinstance(app.sessions, ConnectSessions) is not is_attached
    assert (app.maintain_later is not None) is is_attached
