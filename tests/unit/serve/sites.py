"""Sites over a project in a folder, asked without a socket; commands are fakes."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from starlette.testclient import TestClient

from lakewright.app import App
from lakewright.serve.http.access import Access
from lakewright.serve.http.application import make_application
from lakewright.serve.http.site import Commands, Site
from lakewright.serve.page.routes import Pages
from lakewright.serve.watched_project import WatchedProject
from lakewright.warm.requests import Requests

PROJECT = """
name: shop
modules: [model.yml]
lake: {root_folder: lake}
"""

MODEL = """
connections: {web: {}}
entities:
  orders:
    id: 1
    connection: web
    processtype: merge
    columns:
      - {name: id, fieldroles: [businesskey]}
      - {name: amount}
  people: {id: 2, connection: web, processtype: full}
jobs:
  daily:
    parameters:
      - {name: day, type: string, default: "1"}
      - {name: name, default: none}
      - {name: other, default: none}
    targets: [orders_target, people_target]
  dated: {parameters: [{name: day, type: date}], targets: [people_target]}
targets:
  orders_target: {kind: entity, entity: orders}
  people_target: {kind: entity, entity: people}
"""

BASE = "http://127.0.0.1:8377"


@dataclass
class FakeRequest:
    """A command that ends when a test says so."""

    arguments: Sequence[str]
    trigger: str | None
    out: Any
    err: Any
    code: int | None = None
    signals: list[int] = field(default_factory=list)

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        self.signals.append(number)

    def wait(self, timeout: float | None = None) -> int | None:
        return self.code


@dataclass
class FakeRequests:
    """Keeps the commands that were begun."""

    environ: Mapping[str, str] = field(default_factory=dict)
    begun: list[FakeRequest] = field(default_factory=list)
    out: bytes = b"{}"
    err: bytes = b""

    def begin(self, arguments: Sequence[str], **streams: Any) -> FakeRequest:
        made = FakeRequest(arguments, streams["trigger"], streams["stdout"], streams["stderr"], 0)
        made.out.write(self.out)
        made.err.write(self.err)
        for stream in (made.out, made.err):
            stream.flush()
        self.begun.append(made)
        return made


@dataclass
class Served:
    """A site and a client that asks it as a program does, with the token."""

    site: Site
    client: TestClient
    requests: FakeRequests

    @property
    def app(self) -> App:
        return self.site.app()

    def get(self, path: str, **more: Any) -> Any:
        answer = self.client.get(f"/api/v1{path}", **more)
        assert answer.status_code == 200, answer.text
        return answer.json()


def write_project(folder: Path, model: str = MODEL, project: str = PROJECT) -> None:
    (folder / "project.yml").write_text(project)
    (folder / "model.yml").write_text(model)


def make_site(folder: Path, *, environ: Mapping[str, str] | None = None, **access: Any) -> Site:
    def open_project(on_read: Any) -> App:
        return App.open(folder, environ=environ or {}, on_read=on_read, despite_faults=True)

    return Site(
        WatchedProject(open_project),
        Access("ann", **access),
        Commands(cast("Requests", FakeRequests(environ=environ or {}))),
        allows_data=False,
    )


def browser(shop: Served) -> TestClient:
    """Return a client that has opened the link, as a browser does; it has the session's cookie."""
    client = TestClient(
        shop.client.app,
        base_url=BASE,
        headers={"accept": "text/html", "origin": BASE},
        raise_server_exceptions=False,
        follow_redirects=False,
    )
    assert client.get(f"/login/{shop.site.access.new_link_token()}").status_code == 200
    return client


def csrf_of(client: TestClient) -> str:
    """Return the token of the page's session."""
    token: str = client.get("/api/v1/session").json()["csrf_token"]
    return token


@contextmanager
def served(folder: Path, **options: Any) -> Iterator[Served]:
    """Yield a site of the project in a folder, and what asks it."""
    site = make_site(folder, **options)
    client = TestClient(
        make_application(site, Pages),
        base_url=BASE,
        headers={"authorization": f"Bearer {site.access.token}"},
        raise_server_exceptions=False,
    )
    try:
        yield Served(site, client, cast("FakeRequests", site.commands.requests))
    finally:
        client.close()
        site.commands.close()
        site.project.close()
