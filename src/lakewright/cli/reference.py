"""Generate the reference page of all commands: `python -m lakewright.cli.reference`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from lakewright.cli.entry import root
from lakewright.cli.group import HELP_OPTIONS, SHARED_TITLE

__all__ = ["reference"]

WIDTH = 100
HEAD = """# Commands

Made by `python -m lakewright.cli.reference > docs/reference/commands.md` from the commands' own help.
Every command takes the options under `lakewright` as well, before its name or after it.

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
    """Return the page with the help of each command, in the order of `lakewright --help`."""
    return "\n".join([HEAD, *_sections(root, _context(root, "lakewright", None))])


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    text = command.get_help(context)
    shown = text if context.parent is None else _without_shared(text)
    yield f"## `{context.command_path}`\n\n```text\n{shown}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _sections(inner, _context(inner, name, context))


def _without_shared(text: str) -> str:
    """Return a help text without the global options, which are listed once at the beginning."""
    sections = text.split("\n\n")
    return "\n\n".join(part for part in sections if not part.startswith(SHARED_TITLE))


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    return click.Context(
        command,
        parent=parent,
        info_name=name,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        help_option_names=HELP_OPTIONS,
    )


if __name__ == "__main__":
    sys.stdout.write(reference())
