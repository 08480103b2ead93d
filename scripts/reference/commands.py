"""The help of each command without its examples, in the order of `lakewright --help`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator

import click

from lakewright.cli.entry import root
from lakewright.cli.group import HELP_OPTIONS, SHARED_TITLE

WIDTH = 100
HELP = re.compile(r"\n  -h, --help .*")
OPTION = re.compile(r"^  -.*(?:\n {4,}\S.*)*", re.M)
LONG = re.compile(r"--[\w-]+")
MANY = 2
"""Commands from which on an option that they have is described once."""
USAGE = re.compile(r"\AUsage: (?P<call>.*)\n\n")
COMMANDS = re.compile(r"^Commands:\n(?:  .*\n)+\n?", re.M)
EXAMPLES = re.compile(r"\n*^Examples:\n(?:  .*\n?)+", re.M)


def help_of_commands() -> str:
    """Return a row for each option of many commands, then the help of each command."""
    sections = dict(_sections(root, _context(root, "lakewright", None)))
    counts = Counter(option for text in sections.values() for option in map(_squeezed, OPTION.findall(text)))
    shared = {option for option, count in counts.items() if count >= MANY}
    rows = (f"- `{name}`: {meaning}" for name, meaning in map(_parts, sorted(shared)))
    shown = (f"## `{path}`\n\n```text\n{_without(shared, text)}\n```\n" for path, text in sections.items())
    return "\n".join([*rows, "", *shown]).rstrip("\n")


def _sections(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    text = EXAMPLES.sub("", command.get_help(context))
    is_root = context.parent is None
    yield context.command_path, COMMANDS.sub("", text) if is_root else _without_repetition(context, text)
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
        return "" if call == path or call.endswith("[ARGS]...") else f"{call}\n\n"

    text = COMMANDS.sub("", USAGE.sub(usage, HELP.sub("", text)))
    sections = text.split("\n\n")
    return "\n\n".join(
        part
        for part in sections
        if part.strip() not in ("", "Options:") and not part.startswith(SHARED_TITLE)
    )


def _without(shared: Container[str], text: str) -> str:
    """Return a help text with the names alone of options that many commands have."""
    found = [option for option in OPTION.findall(text) if _squeezed(option) in shared]
    for option in found[:-1]:
        text = text.replace(f"{option}\n", "")
    names = ", ".join(LONG.findall(option)[0] for option in found)
    return text.replace(found[-1], f"  Also: {names}") if found else text


def _squeezed(option: str) -> str:
    """Return an option of a help text on one line, its name and its meaning two spaces apart."""
    name, _, meaning = option.strip().partition("  ")
    return f"{name.strip()}  {' '.join(meaning.split())}"


def _parts(option: str) -> tuple[str, str]:
    name, _, meaning = option.partition("  ")
    return name, meaning


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    return click.Context(
        command,
        parent=parent,
        info_name=name,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        help_option_names=HELP_OPTIONS,
    )
