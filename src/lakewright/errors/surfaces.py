"""Text with commands, as each surface shows it: to be typed in a terminal, or called in Python.

The plain text, which logs, records and JSON hold, is the text itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from lakewright.errors.phrase import Command, Option, Phrase, ShellLine

_WITHOUT_PROJECT = frozenset(("init", "demo", "setup"))
"""Commands that make a project, or do not need one."""

_FLAGS = frozenset(
    (
        *("--allow-backdated", "--allow-data-loss", "--cascade", "--check", "--dry-run", "--keep-going"),
        *("--late", "--over-foreign", "--requeue", "--resume", "--retry", "--wait"),
    )
)
"""Options without a value that are arguments in Python."""

_VALUES = frozenset(
    ("--allow", "--entity", "--from", "--from-time", "--processing-time", "--reason", "--strategy")
)
"""Options with a value that are arguments in Python."""


def _argument(option: str, value: str) -> str:
    """Return the argument of Python for an option."""
    name = option.removeprefix("--").replace("-", "_")
    return f"{'from_slice' if name == 'from' else name}={value}"


_OF_SENTENCES = {
    **{flag: _argument(flag, "True") for flag in _FLAGS},
    "--despite-faults": "Project.load(…, despite_faults=True)",
    "--project": "Project.load(folder)",
    "--strategy full": 'strategy="full"',
    "-vv": "error.__cause__",
}
"""What a sentence names in Python instead of an option."""

_WITHOUT_MEANING = frozenset({"--rehearse", "--yes"})
"""Options that Python does not need: there it is another method, or nobody is asked."""


def on_terminal(text: str, options: str) -> str:
    """Return a text with the options of the present call appended to each command.

    Example:
        >>> on_terminal(Phrase("See ", Command("history"), "."), " --project lake")
        'See `lakewright history --project lake`.'
    """
    return "".join(_typed(each, options) for each in text.parts) if isinstance(text, Phrase) else text


def _typed(part: str, options: str) -> str:
    if isinstance(part, Command):
        return f"`{typed(part, options)}`"
    return f"`{part}`" if isinstance(part, ShellLine) else part


def typed(command: Command, options: str) -> str:
    """Return the line to type for a command, with the options of the present call.

    Example:
        >>> typed(Command("manifest", "run", "--as", "a", "--", "./load"), " -P dev")
        'lakewright manifest run --as a -P dev -- ./load'
    """
    argv = command.argv
    if "--project" in argv or "--help" in argv or argv[0] in _WITHOUT_PROJECT:
        return command
    # What follows `--` is the command of another program.
    end = argv.index("--") if "--" in argv else len(argv)
    return " ".join((f"{Command(*argv[:end])}{options}", *Command(*argv[end:]).split(" ")[1:]))


def message_of(record: logging.LogRecord, shown: Callable[[str], str]) -> str:
    """Return the message of a log record, with its texts, errors and faults as a surface shows them."""
    if not isinstance(record.args, tuple):
        return record.getMessage()
    texts = (getattr(each, "phrase", each) for each in record.args)
    return str(record.msg) % tuple(shown(each) if isinstance(each, str) else each for each in texts)


def in_python(text: str) -> str | None:
    """Return a text with calls for its commands and arguments for its options; None if it has no such.

    A command that has no call stays as it is typed.

    Example:
        >>> in_python(Phrase("Mend it, then ", Command("manifest", "resolve", "orders/2024-05-01"), "."))
        'Mend it, then project.entity("orders").resolve("2024-05-01").'
        >>> in_python(Phrase("Give a later time, or pass ", Option("--allow-backdated"), "."))
        'Give a later time, or pass allow_backdated=True.'
    """
    if not isinstance(text, Phrase):
        return None
    calls = [_in_python(each) for each in text.parts]
    if not any(calls):
        return None
    plain = (_typed(each, "") for each in text.parts)
    return "".join(call or part for call, part in zip(calls, plain, strict=True))


def _in_python(part: str) -> str | None:
    if isinstance(part, Command):
        return _call(part)
    return (part.python or _OF_SENTENCES.get(part)) if isinstance(part, Option) else None


def _call(command: Command) -> str | None:
    """Return the call that does in Python what a command does; None if there is no such call."""
    parsed = _parsed(command)
    if parsed is None:
        return None
    words, arguments = parsed
    found: str | None = None
    match words:
        case ["plan"]:
            found = _method("project", "due", (), arguments)
        case ["apply" | "decide" | "status" as method, *values]:
            found = _method("project", method, values, arguments)
        case ["history"]:
            found = _method("project", "history", (), arguments)
        case ["job" | "plan" as head, job, phase, *values]:
            found = _method("project", "run" if head == "job" else head, [job, phase, *values], arguments)
        case ["process" | "rebuild" | "undo" as method, entity, *values]:
            is_rehearsed = "--rehearse" in command.argv
            found = _method(_entity(entity), "rehearse" if is_rehearsed else method, values, arguments)
        case ["history", "row", entity, *values]:
            found = _method(_entity(entity), "history", values, arguments)
        case ["manifest", "accept" | "requeue" | "resolve" | "skip" | "unskip" as method, item]:
            entity, _, name = item.partition("/")
            found = _method(_entity(entity), method, [name], arguments) if name and not _is_id(item) else None
        case ["manifest", "ls"] if len(arguments) <= 1:
            found = _items(*arguments)
        case ["manifest", "show", *items] if len(items) <= 1 and not arguments:
            found = f"project.manifest.records({next(map(_quoted, filter(_is_id, items)), 'item_id')})"
        case ["sql", query] if not arguments:
            found = f"{_method('project', 'sql', [query], arguments)}.show()"
    return found


def _parsed(command: Command) -> tuple[Sequence[str], Sequence[str]] | None:
    """Return a command's words and its options as arguments; None if Python lacks one of the options."""
    words: list[str] = []
    arguments: list[str] = []
    included: list[str] = []
    pending = list(command.argv)
    while pending:
        word = pending.pop(0)
        if not word.startswith("-"):
            words.append(word)
        elif word in _FLAGS:
            arguments.append(_argument(word, "True"))
        elif word == "--include" and pending:
            included.append(_quoted(pending.pop(0)))
        elif word in _VALUES and pending:
            arguments.append(_argument(word, _quoted(pending.pop(0))))
        elif word not in _WITHOUT_MEANING:
            return None
    if included:
        arguments.append(f"include=[{', '.join(included)}]")
    return words, arguments


def _method(owner: str, method: str, values: Sequence[str], arguments: Sequence[str]) -> str:
    return f"{owner}.{method}({', '.join((*map(_quoted, values), *arguments))})"


def _entity(name: str) -> str:
    return f"project.entity({_quoted(name)})"


def _is_id(item: str) -> bool:
    """Return whether an item is named by its id, which has no entity to call, and not by entity and slice."""
    return ":" in item or item.startswith("/")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _items(argument: str = "") -> str | None:
    """Return the call for the items of the manifest, or for those that concern an entity."""
    name, _, entity = argument.partition("=")
    if name == "entity":
        return f'project.manifest.items("lakewright/" + project.name + {_quoted("/" + entity[1:-1])})'
    return None if argument else "project.manifest.items()"
