"""The help of each command without its examples, in the order of `lakewright --help`."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Container, Iterator

import click

from lakewright.cli.entry import root
from lakewright.cli.group import HELP_OPTIONS, SHARED_TITLE

WIDTH = 100
HELP = re.compile(r"\n  -h, --help .*")
OPTION = re.compile(r"^  -.*(?:\n {4,}\S.*)*", re.M)
LONG = re.compile(r"--[\w-]+")
RANGE = re.compile(r"; [\dx<>=]+(?=\])| ?\[[\dx<>=]+\]")
MANY = 2
"""Commands from which on an option that they have is described once."""
USAGE = re.compile(r"\AUsage: (?P<call>.*)\n\n")
COMMANDS = re.compile(r"^Commands:\n(?:  .*\n)+\n?", re.M)
EXAMPLES = re.compile(r"\n*^Examples:\n(?:  .*\n?)+", re.M)
ITEM = re.compile(r"\s*ITEM is `ENTITY/SLICE`, a path or an id\.")
"""What many commands say; the page says it once."""


def help_of_commands() -> str:
    """Return an entry for each option of many commands, then a section for each command."""
    sections = dict(_sections(root, _context(root, "lakewright", None)))
    counts = Counter(option for text in sections.values() for option in map(_squeezed, OPTION.findall(text)))
    shared = {option for option, count in counts.items() if count >= MANY}
    rows = map(_entry, sorted(shared))
    shown = (f"## `{path}`\n\n{_as_markdown(shared, text)}\n" for path, text in sections.items())
    return "\n".join([*rows, "", *shown]).rstrip("\n")


def _sections(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    text = COMMANDS.sub("", EXAMPLES.sub("", command.get_help(context)))
    is_root = context.parent is None
    yield context.command_path, USAGE.sub("", text) if is_root else _without_repetition(context, text)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _sections(inner, _context(inner, name, context))


def _without_repetition(context: click.Context, text: str) -> str:
    """Return a help text without what the page has at the beginning, in a heading or in another section."""
    path = context.command_path

    def usage(found: re.Match[str]) -> str:
        call = found["call"].replace("[OPTIONS] ", "").removesuffix(" [OPTIONS]")
        return "" if call == path or call.endswith("[ARGS]...") else f"`{call.removeprefix(f'{path} ')}`\n\n"

    text = USAGE.sub(usage, HELP.sub("", ITEM.sub("", text)))
    sections = text.split("\n\n")
    return "\n\n".join(
        part
        for part in sections
        if part.strip() not in ("", "Options:") and not part.startswith(SHARED_TITLE)
    )


def _as_markdown(shared: Container[str], text: str) -> str:
    """Return a help text with a list of its options; those that many commands have come last, by name."""
    blocks = (_block(shared, block) for block in text.split("\n\n"))
    return "\n\n".join(block for block in blocks if block)


def _block(shared: Container[str], block: str) -> str:
    if not block.startswith("Options"):
        return textwrap.dedent(block)
    options = [_squeezed(option) for option in OPTION.findall(block)]
    entries = [_entry(option) for option in options if option not in shared]
    also = [f"`{LONG.findall(option)[0]}`" for option in options if option in shared]
    if also:
        entries.append(f"- Also: {', '.join(also)}")
    title = f"{SHARED_TITLE}:\n\n" if block.startswith(SHARED_TITLE) else ""
    return title + "\n".join(entries)


def _squeezed(option: str) -> str:
    """Return an option of a help text on one line, its name and its meaning two spaces apart."""
    name, _, meaning = option.strip().partition("  ")
    meaning = RANGE.sub("", " ".join(meaning.split()))
    return f"{name.strip().replace('INTEGER RANGE', 'N')}  {meaning.strip()}"


def _entry(option: str) -> str:
    name, _, meaning = option.partition("  ")
    return f"- `{name}`: {meaning}"


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    return click.Context(
        command,
        parent=parent,
        info_name=name,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        help_option_names=HELP_OPTIONS,
    )
