"""The page of all commands, made from the commands themselves: `python -m lakewright.cli.reference`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from lakewright.cli.entry import root

__all__ = ["reference"]

WIDTH = 100
HEAD = """# Commands

Made by `python -m lakewright.cli.reference > docs/reference/commands.md` from the commands' own help.

Exit codes:

| code | meaning |
|---|---|
| 0 | success, or nothing to do |
| 1 | a target failed |
| 2 | wrong usage, or the project has errors |
| 3 | `plan --detailed-exitcode` found work |
| 4 | something is locked by another run, or waits for an operator after a failure |
| 5 | VERIFY failed, and nothing else |
| 130, 143 | interrupted by Ctrl-C, by SIGTERM |
"""


def reference() -> str:
    """Return the page: the help of each command, in the order of `lakewright --help`."""
    context = click.Context(root, info_name="lakewright", terminal_width=WIDTH, max_content_width=WIDTH)
    return "\n".join([HEAD, *_sections(root, context)])


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## `{context.command_path}`\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _sections(inner, _below(inner, name, context))


def _below(command: click.Command, name: str, context: click.Context) -> click.Context:
    return click.Context(
        command, parent=context, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH
    )


if __name__ == "__main__":
    sys.stdout.write(reference())
