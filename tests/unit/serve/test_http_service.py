"""The HTTP service on a socket: where it listens, who gets in, and what it does with slow clients."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.serve.sites import FakeRequests, write_project

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.serve.http import service as http
from lakewright.serve.page.routes import Pages
from lakewright.serve.server_files import ServerFiles, new_link
from lakewright.serve.service import ServeOptions, Serving
from lakewright.serve.watched_project import WatchedProject


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[http.HttpService]:
    """A service that has started, on a free port."""
    monkeypatch.setattr(http, "HEADER_SECONDS", 0.3)
    monkeypatch.setattr(http, "IDLE_SECONDS", 1)
    write_project(tmp_path)
    made = make(tmp_path, print)
    made.start()
    yield made
    made.stop()
    made.serving.project.close()


def make(folder: Path, report: Callable[[str], None], port: int = 0) -> http.HttpService:
    files = ServerFiles(folder)
    files.folder.mkdir(exist_ok=True)
    return http.make_service(
        Serving(
            options=ServeOptions(port=port),
            files=files,
            project=WatchedProject(lambda on_read: App.open(folder, environ={}, on_read=on_read)),
            requests=FakeRequests(),  # type: ignore[arg-type]
            runner="",
            report=report,
        ),
        Pages,
    )


def get(url: str, **headers: str) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
        found: bytes = answer.read()
        return found


def test_a_program_reads_with_the_token_that_only_its_user_can_read(service: http.HttpService) -> None:
    file = service.serving.files.token
    assert file.stat().st_mode & 0o777 == 0o600
    bearer = f"Bearer {file.read_text().strip()}"
    assert json.loads(get(f"{service.url}/api/v1/project", Authorization=bearer))["project"] == "shop"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        get(f"{service.url}/api/v1/project")
    link = new_link(service.serving.files, {"http": service.url})
    assert link is not None
    assert link.startswith(f"{service.url}/login/")


def test_a_port_that_is_taken_is_said(service: http.HttpService, tmp_path: Path) -> None:
    port = int(service.url.rpartition(":")[2])
    other = make(tmp_path, print, port)
    with pytest.raises(UsageError, match=f"port {port}: Address already in use"):
        other.start()
    other.stop()


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HTTP/1.1\r\nHost: x", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET"]
)
def test_a_request_that_does_not_come_to_its_end_is_cut_off(service: http.HttpService, sent: bytes) -> None:
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5) as client:
        client.sendall(sent)
        begin = time.monotonic()
        while client.recv(65_536):
            pass
        assert 0.2 < time.monotonic() - begin < 4


def test_the_server_says_how_to_open_its_page(tmp_path: Path) -> None:
    write_project(tmp_path)
    said: list[str] = []
    made = make(tmp_path, said.append)
    made.start()
    made.stop()
    assert said[0].startswith("open http://127.0.0.1:")


def test_an_error_that_ends_its_thread_is_logged_and_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def run(*_: object, **__: object) -> None:
        raise MemoryError

    write_project(tmp_path)
    broken = make(tmp_path, print)
    monkeypatch.setattr(http.CalmServer, "run", run)
    broken.start()
    assert broken._thread is not None
    broken._thread.join(10)

    assert broken.has_ended
    assert "the page and the API have ended" in caplog.text
    broken.stop()
    assert not broken.has_ended
