"""A server's services start in order, and stop whatever happens; one server runs for a project."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lakewright.errors import UsageError
from lakewright.serve.options import ServeOptions
from lakewright.serve.server import running
from lakewright.serve.server_files import ServerFiles


@dataclass
class Part:
    name: str
    seen: list[str] = field(default_factory=list)
    start_fails: bool = False
    stop_fails: bool = False
    is_busy: bool = False

    def start(self) -> None:
        self.seen.append(f"start {self.name}")
        if self.start_fails:
            raise UsageError("no")

    def stop(self) -> None:
        self.seen.append(f"stop {self.name}")
        if self.stop_fails:
            raise OSError("no")


def test_services_stop_in_the_reverse_order_although_one_fails_to() -> None:
    seen: list[str] = []
    with running([Part("a", seen), Part("b", seen, stop_fails=True)]):
        seen.append("at work")
    assert seen == ["start a", "start b", "at work", "stop b", "stop a"]


def test_what_has_started_is_stopped_when_a_service_cannot_start() -> None:
    seen: list[str] = []
    services = [Part("a", seen), Part("b", seen, start_fails=True), Part("c", seen)]
    with pytest.raises(UsageError), running(services):
        pass
    assert seen == ["start a", "start b", "stop b", "stop a"]


def test_a_second_server_of_a_project_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    files = ServerFiles.of(tmp_path)
    assert files.read_state() is None
    with files.locked():
        files.write_state({"pid": 1})
        with pytest.raises(UsageError, match="a server runs"), files.locked():
            pass
        assert files.read_state() == {"pid": 1}
        assert files.state.stat().st_mode & 0o777 == 0o600
    assert files.read_state() is None
    assert not files.state.exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.0.0.2"])
def test_a_loopback_host_needs_no_proxy(host: str) -> None:
    ServeOptions(host=host).check()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org"])
def test_any_other_host_is_refused_without_a_proxy(host: str) -> None:
    with pytest.raises(UsageError, match="loopback"):
        ServeOptions(host=host).check()
    ServeOptions(host=host, behind_proxy="X-User").check()


def test_options_are_arguments_of_the_command() -> None:
    options = ServeOptions(port=0, allow_data=True, behind_proxy="X-User")
    assert options.arguments() == (
        *("--host", "127.0.0.1", "--port", "0"),
        *("--allow-data", "--behind-proxy", "X-User"),
    )
