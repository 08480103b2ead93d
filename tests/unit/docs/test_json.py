"""C4: the page of JSON documents names every command that prints one."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from tests.documents import PAGE

from lakewright.cli.entry import root


def commands(command: click.Command, path: str) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from commands(inner, f"{path} {name}")


@pytest.mark.parametrize("path", sorted(commands(root, "lakewright")))
def test_every_command_is_described(path: str) -> None:
    assert f"`{path}`" in PAGE.read_text("utf-8")
