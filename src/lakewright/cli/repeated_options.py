"""The global options of a call, repeated in the commands that it prints, so that these can be pasted.

Whoever works on a project by `--project lake -P prod` gets every command of a message with the same options.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from lakewright.cli.options import Settings
from lakewright.cli.page import Block, Branch, Line, Span, Table
from lakewright.spec.expressions.secrets import is_secret_name

__all__ = ["block_with_options", "repeated_options", "with_options"]

_COMMAND = re.compile(r"`lakewright ([a-z][^`]*)`")
_WITHOUT_PROJECT = frozenset(("init", "demo", "setup"))
"""Commands that make a project, or do not need one."""


def repeated_options(settings: Settings, redacted: Callable[[str], str] = str) -> str:
    """Return the options that choose a project and change its definitions, as they must be typed again.

    A secret value becomes `<name>`, which no shell accepts, so that it is filled in.

    Example:
        >>> from pathlib import Path
        >>> repeated_options(Settings(Path("my lake"), ("prod",), {"day": "1", "db_password": "x"}))
        " --project 'my lake' -P prod -D day=1 -D db_password=<db_password>"
    """
    words = [] if settings.project is None else ["--project", shlex.quote(str(settings.project))]
    words += [word for name in settings.profiles for word in ("-P", shlex.quote(name))]
    words += _assigned("-D", settings.definitions, redacted)
    words += _assigned("--conf", settings.conf, redacted)
    return "".join(f" {word}" for word in words)


def _assigned(option: str, values: Mapping[str, str], redacted: Callable[[str], str]) -> Iterator[str]:
    for name, value in values.items():
        yield option
        is_secret = is_secret_name(name) or redacted(value) != value
        yield f"{shlex.quote(name)}=<{name}>" if is_secret else shlex.quote(f"{name}={value}")


def with_options(text: str, options: str) -> str:
    """Return a text with the options appended to each command in backticks.

    Example:
        >>> with_options("See `lakewright history`.", " --project lake")
        'See `lakewright history --project lake`.'
        >>> with_options("`lakewright manifest run --as a -- ./load`", " -P dev")
        '`lakewright manifest run --as a -P dev -- ./load`'
    """
    if not options:
        return text
    return _COMMAND.sub(lambda found: f"`lakewright {_completed(found[1], options)}`", text)


def _completed(command: str, options: str) -> str:
    is_complete = "--project" in command or "--help" in command
    if is_complete or command.split(maxsplit=1)[0] in _WITHOUT_PROJECT:
        return command
    # What follows ` -- ` is the command of another program.
    own, dashes, other = command.partition(" -- ")
    return f"{own}{options}{dashes}{other}"


def block_with_options(block: Block, options: str) -> Block:
    """Return a block of a page with the options appended to each command."""
    if not options:
        return block
    if isinstance(block, Line):
        return _line(block, options)
    if isinstance(block, Branch):
        return _branch(block, options)
    return Table(block.columns, tuple(tuple(_line(cell, options) for cell in row) for row in block.rows))


def _branch(branch: Branch, options: str) -> Branch:
    return Branch(_line(branch.line, options), tuple(_branch(child, options) for child in branch.children))


def _line(content: Line, options: str) -> Line:
    spans = tuple(Span(with_options(span.text, options), span.style) for span in content.spans)
    return replace(content, spans=spans)
