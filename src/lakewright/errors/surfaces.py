"""Text with commands, as each surface shows it: to be typed in a terminal, or called in Python.

The plain text, which logs, records and JSON hold, is the text itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lakewright.errors.phrase import Command, Option, Phrase, ShellLine

_WITHOUT_PROJECT = frozenset(("init", "demo", "setup"))
"""Commands that make a project, or do not need one."""

_ARGUMENTS = {
    "--allow-backdated": "allow_backdated=True",
    "--allow-data-loss": "allow_data_loss=True",
    "--cascade": "cascade=True",
    "--check": "check=True",
    "--dry-run": "dry_run=True",
    "--keep-going": "keep_going=True",
    "--late": "late=True",
    "--over-foreign": "over_foreign=True",
    "--requeue": "requeue=True",
    "--resume": "resume=True",
    "--retry": "retry=True",
    "--wait": "wait=True",
}
_OF_SENTENCES = {
    **_ARGUMENTS,
    "--despite-faults": "Project.load(…, despite_faults=True)",
    "--project": "Project.load(folder)",
    "--strategy full": 'strategy="full"',
    "-vv": "error.__cause__",
}
"""What a sentence names in Python instead of an option."""

_VALUES = {
    "--allow": "allow",
    "--entity": "entity",
    "--from": "from_slice",
    "--from-time": "from_time",
    "--processing-time": "processing_time",
    "--reason": "reason",
    "--strategy": "strategy",
}
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


@dataclass(slots=True)
class _Given:
    """The words and options of a command, the latter as arguments of Python."""

    words: list[str] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)
    is_rehearsed: bool = False

    @classmethod
    def of(cls, command: Command) -> _Given | None:
        """Return the parts of a command; None if it has an option that Python does not have."""
        given, pending, included = cls(), list(command.argv), list[str]()
        while pending:
            word = pending.pop(0)
            if not word.startswith("-"):
                given.words.append(word)
            elif word in _ARGUMENTS:
                given.keywords.append(_ARGUMENTS[word])
            elif word == "--include" and pending:
                included.append(_quoted(pending.pop(0)))
            elif word in _VALUES and pending:
                given.keywords.append(f"{_VALUES[word]}={_quoted(pending.pop(0))}")
            elif word not in _WITHOUT_MEANING:
                return None
            given.is_rehearsed |= word == "--rehearse"
        if included:
            given.keywords.append(f"include=[{', '.join(included)}]")
        return given


def _call(command: Command) -> str | None:
    given = _Given.of(command)
    if given is None or not given.words:
        return None
    head, *rest = given.words
    if head in ("history", "manifest") and rest:
        head, rest = f"{head} {rest[0]}", rest[1:]
    make = _CALLS.get(head)
    return make(head, rest, given) if make is not None else None


def _of_project(head: str, words: Sequence[str], given: _Given) -> str | None:
    method = {"job": "run"}.get(head, head)
    return f"project.{_method(method, words, given)}"


def _of_job(head: str, words: Sequence[str], given: _Given) -> str | None:
    return _of_project(head, words, given) if len(words) > 1 else None


def _of_plan(head: str, words: Sequence[str], given: _Given) -> str | None:
    return _of_job(head, words, given) if words else _of_project("due", words, given)


def _of_entity(head: str, words: Sequence[str], given: _Given) -> str | None:
    if not words:
        return None
    method = "rehearse" if given.is_rehearsed else head.rpartition(" ")[2]
    method = {"row": "history"}.get(method, method)
    return f"project.entity({_quoted(words[0])}).{_method(method, words[1:], given)}"


def _of_slice(head: str, words: Sequence[str], given: _Given) -> str | None:
    """Return the call for an item that is named by its entity and its slice; an id has no entity to call."""
    if len(words) != 1 or ":" in words[0] or words[0].startswith("/"):
        return None
    entity, _, name = words[0].partition("/")
    return _of_entity(head, [entity, name], given) if name else None


def _method(name: str, words: Sequence[str], given: _Given) -> str:
    return f"{name}({', '.join((*map(_quoted, words), *given.keywords))})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _items(head: str, words: Sequence[str], given: _Given) -> str | None:
    """Return the call for the items of the manifest, or for those that concern an entity."""
    del head
    if words or len(given.keywords) > 1:
        return None
    if not given.keywords:
        return "project.manifest.items()"
    name, _, entity = given.keywords[0].partition("=")
    application = f'"lakewright/" + project.name + {_quoted("/" + entity[1:-1])}'
    return f"project.manifest.items({application})" if name == "entity" else None


def _records(head: str, words: Sequence[str], given: _Given) -> str | None:
    """Return the call for the records of an item, which takes its id."""
    del head
    if given.keywords or len(words) > 1:
        return None
    is_id = bool(words) and (":" in words[0] or words[0].startswith("/"))
    return f"project.manifest.records({_quoted(words[0]) if is_id else 'item_id'})"


def _query(head: str, words: Sequence[str], given: _Given) -> str | None:
    return f"{_of_project(head, words, given)}.show()" if len(words) == 1 and not given.keywords else None


_CALLS: dict[str, Callable[[str, Sequence[str], _Given], str | None]] = {
    "apply": _of_project,
    "decide": _of_project,
    "history": _of_project,
    "history row": _of_entity,
    "job": _of_job,
    "manifest accept": _of_slice,
    "manifest ls": _items,
    "manifest requeue": _of_slice,
    "manifest resolve": _of_slice,
    "manifest show": _records,
    "manifest skip": _of_slice,
    "manifest unskip": _of_slice,
    "plan": _of_plan,
    "process": _of_entity,
    "rebuild": _of_entity,
    "sql": _query,
    "status": _of_project,
    "undo": _of_entity,
}
