"""Which commands a server runs, and whose server it is."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import lakewright_client as client
from lakewright.cli.entry import root

COLD = {
    "demo": "it writes a project of its own",
    "init": "it writes a project of its own",
    "manifest acquire": "its lock belongs to the process that starts it",
    "manifest add": "other programs use it, with any project or none",
    "manifest export": "it has no use for Spark",
    "manifest failed": "as acquire",
    "manifest import": "it has no use for Spark",
    "manifest move": "the server's project may be what moves",
    "manifest processed": "as acquire",
    "manifest renew": "as acquire",
    "manifest run": "it runs other programs, for as long as it takes",
    "manifest state": "as add",
    "manifest watch": "it waits for ever",
    "schema": "it has no project",
    "serve": "it is the server",
    "setup": "it prepares the machine",
    "triggers": "what it starts may be for other machines",
}
"""Commands that no server runs, each with the reason."""


def paths(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from paths(inner, (*path, name))


@pytest.mark.parametrize("path", sorted(paths(root)), ids=" ".join)
def test_each_command_either_runs_in_the_server_or_has_a_reason_not_to(path: tuple[str, ...]) -> None:
    is_cold = path[0] in COLD or " ".join(path) in COLD
    assert client._is_warm([*path, "argument"]) is not is_cold


@pytest.mark.parametrize(
    ("line", "is_warm"),
    [
        ("status", True),
        ("--project serve status", True),
        ("-D a=b --conf c=d -o json -v process orders", True),
        ("manifest --project x ls", True),
        ("manifest run -- cat", False),
        ("process --help", False),
        ("-h", False),
        ("--version", False),
        ("status --no-serve", False),
        ("serve stop", False),
        ("unheard of", False),
        ("", False),
    ],
)
def test_the_command_is_found_among_options(line: str, is_warm: bool) -> None:
    assert client._is_warm(line.split()) is is_warm


def served(folder: Path) -> str:
    (folder / ".lakewright").mkdir(parents=True)
    (folder / "project.yml").touch()
    path = folder / ".lakewright" / "serve.sock"
    path.touch()
    return str(path)


def test_the_server_is_that_of_the_named_or_the_nearest_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer, inner = served(tmp_path / "outer"), served(tmp_path / "outer" / "inner")
    deep = tmp_path / "outer" / "inner" / "deep"
    deep.mkdir()
    monkeypatch.chdir(deep)
    assert client.find_socket(["status"]) == inner
    assert client.find_socket(["status", "--project", "../.."]) == outer
    assert client.find_socket([f"--project={tmp_path / 'outer' / 'project.yml'}"]) == outer
    Path(inner).unlink()
    assert client.find_socket(["status"]) is None
    monkeypatch.chdir(tmp_path)
    assert client.find_socket(["status"]) is None
    assert client.find_socket(["--project"]) is None


def test_without_a_server_or_with_the_variable_a_command_runs_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(client.Refused) as refused:
        client.run(["status"])
    assert not str(refused.value)
    path = served(tmp_path / "project")
    Path(path).unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        monkeypatch.chdir(tmp_path / "project")
        monkeypatch.setenv("LAKEWRIGHT_NO_SERVE", "1")
        with pytest.raises(client.Refused) as refused:
            client.run(["status"])
        assert not str(refused.value)


def test_the_client_imports_nothing_of_the_package() -> None:
    code = (
        "import sys, lakewright_client\n"
        "print([name for name in sys.modules if name.partition('.')[0] in "
        "('lakewright', 'click', 'socket', 'subprocess', 'logging', 'json', 'pathlib')])"
    )
    paths = f"{Path(client.__file__).parent}"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
