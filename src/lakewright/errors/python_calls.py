"""Commands and options of a remedy as calls of the Python API, for a caller who has no terminal."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

__all__ = ["python_words"]

_COMMAND = re.compile(r"`lakewright ([a-z][^`]*)`")
_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)(?: (full|merge|historic)\b)?")

_PARAMETER = re.compile(r"(?<!\w)(\w+) is of type (\w+): write \1=[^\s,]+(, or \1:start=)?")
"""The remedy of an argument of a job, with the start of what it says of ranges."""

_VALUES_OF_TYPES = {
    "string": '"text"',
    "integer": "1",
    "float": "1.5",
    "decimal": "1.5",
    "boolean": "True",
    "date": "date(2022, 1, 31)",
    "timestamp": "datetime(2022, 1, 31, 12, tzinfo=UTC)",
    "duration": "timedelta(hours=1)",
}
_STEPS = {"timestamp": ", step=timedelta(hours=1)"}
"""The step of a range, for types whose ranges have none by default."""

_NEXT = re.compile(r"(\bthen\b[^.;]*|^ and( then)? )$", re.IGNORECASE)
"""What stands between two commands of a remedy of which the second is typed after the first."""

_SHOWING = ("status", "history", "plan", "manifest ls", "manifest show", "sql")
"""Commands that change nothing."""

_UNDECLARED = re.compile(r"^Declare '(\w+)' in an environment, as a parameter of the job or with -D\.")
"""The remedy of a name that an expression uses and nothing declares."""

_VERBOSE = re.compile(r"(?<![\w-])-vv\b")

_FLAGS = {
    "--allow-backdated": "allow_backdated",
    "--allow-data-loss": "allow_data_loss",
    "--cascade": "cascade",
    "--check": "check",
    "--dry-run": "dry_run",
    "--keep-going": "keep_going",
    "--late": "late",
    "--over-foreign": "over_foreign",
    "--requeue": "requeue",
    "--resume": "resume",
    "--retry": "retry",
    "--wait": "wait",
}
_OF_LOAD = {
    "--despite-faults": "Project.load(…, despite_faults=True)",
    "--project": "Project.load(folder)",
}
"""Options for which a project is loaded once more."""

_VALUES = {
    "--entity": "entity",
    "--from": "from_slice",
    "--from-time": "from_time",
    "--processing-time": "processing_time",
    "--reason": "reason",
    "--strategy": "strategy",
}
_WITHOUT_MEANING = frozenset({"--rehearse", "--yes"})
"""Options that Python does not need: there it is another method, or nobody is asked."""


def python_words(remedy: str) -> str | None:
    """Return what to call in Python instead of what a remedy says to type; None if it has nothing such.

    A command that has no call is left to the terminal.

    Example:
        >>> python_words("Mend it, then `lakewright manifest resolve orders/2024-05-01`.")
        'project.entity("orders").resolve("2024-05-01")'
        >>> python_words("Put it in its place: `lakewright rebuild orders --include d1`.")
        'project.entity("orders").rebuild(include=["d1"])'
        >>> python_words("Give a later time, or pass --allow-backdated.")
        'allow_backdated=True for --allow-backdated'
        >>> python_words("Correct the query; -vv shows all that Spark says.")
        'the traceback, or error.__cause__, for -vv'
        >>> python_words("day is of type date: write day=2022-01-31, or day:start=… day:end=…")
        'day=date(2022, 1, 31), or day=Range(…, …)'
        >>> python_words("Declare 'day' in an environment, as a parameter of the job or with -D.")
        'day=… for `read` and `run`; Project.load(…, definitions={"day": "…"}) for -D'
        >>> python_words("`lakewright rebuild orders` builds it, `lakewright status` shows more.")
        'project.entity("orders").rebuild(); project.status()'
        >>> python_words("`lakewright undo orders d1`, then `lakewright process orders`.")
        'project.entity("orders").undo("d1"), then project.entity("orders").process()'
    """
    others = (*_options(_COMMAND.sub("", remedy)), *_parameters(remedy))
    return "; ".join(dict.fromkeys((*filter(None, (_calls(remedy),)), *others))) or None


def _calls(remedy: str) -> str:
    """Return the calls for the commands of a remedy, joined as these are: one after the other, or instead.

    What only shows something comes last.
    """
    ways: list[list[str]] = []
    shown: list[str] = []
    end = 0
    for each in _COMMAND.finditer(remedy):
        call = _call(each[1])
        if call is None:
            continue
        if each[1].startswith(_SHOWING):
            shown.append(call)
            continue
        if ways and _NEXT.search(remedy[end : each.start()]):
            ways[-1].append(call)
        else:
            ways.append([call])
        end = each.end()
    told = ", or ".join(dict.fromkeys(", then ".join(way) for way in ways))
    return "; ".join(filter(None, (told, *dict.fromkeys(shown))))


def _options(text: str) -> Iterator[str]:
    for name, value in _OPTION.findall(text):
        if name in _FLAGS:
            yield f"{_FLAGS[name]}=True for {name}"
        elif name in _OF_LOAD:
            yield f"{_OF_LOAD[name]} for {name}"
        elif name in _VALUES and value:
            yield f"{_VALUES[name]}={_quoted(value)} for {name} {value}"
    if undeclared := _UNDECLARED.search(text):
        name = undeclared[1]
        yield f"{name}=… for `read` and `run`"
        yield f'Project.load(…, definitions={{"{name}": "…"}}) for -D'
    if _VERBOSE.search(text):
        yield "the traceback, or error.__cause__, for -vv"


def _parameters(text: str) -> Iterator[str]:
    for name, kind, has_ranges in _PARAMETER.findall(text):
        if kind in _VALUES_OF_TYPES:
            ranges = f", or {name}=Range(…, …{_STEPS.get(kind, '')})" if has_ranges else ""
            yield f"{name}={_VALUES_OF_TYPES[kind]}{ranges}"


@dataclass(slots=True)
class _Typed:
    """A command as it is typed, taken apart."""

    words: list[str] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)
    is_rehearsed: bool = False

    @classmethod
    def of(cls, text: str) -> _Typed | None:
        """Return the parts of a command; None if it has an option that Python does not have."""
        typed, pending, included = cls(), shlex.split(text), list[str]()
        while pending:
            word = pending.pop(0)
            if not word.startswith("-"):
                typed.words.append(word)
            elif word in _FLAGS:
                typed.keywords.append(f"{_FLAGS[word]}=True")
            elif word == "--include" and pending:
                included.append(_quoted(pending.pop(0)))
            elif word in _VALUES and pending:
                typed.keywords.append(f"{_VALUES[word]}={_quoted(pending.pop(0))}")
            elif word not in _WITHOUT_MEANING:
                return None
            typed.is_rehearsed |= word == "--rehearse"
        if included:
            typed.keywords.append(f"include=[{', '.join(included)}]")
        return typed


def _call(text: str) -> str | None:
    try:
        typed = _Typed.of(text)
    except ValueError:  # a quote without its end
        return None
    if typed is None or not typed.words:
        return None
    head, *rest = typed.words
    if head in ("history", "manifest") and rest:
        head, rest = f"{head} {rest[0]}", rest[1:]
    make = _CALLS.get(head)
    return make(head, rest, typed) if make is not None else None


def _of_project(head: str, words: Sequence[str], typed: _Typed) -> str | None:
    method = {"job": "run"}.get(head, head)
    return f"project.{_method(method, words, typed)}"


def _of_job(head: str, words: Sequence[str], typed: _Typed) -> str | None:
    return _of_project(head, words, typed) if len(words) > 1 else None


def _of_entity(head: str, words: Sequence[str], typed: _Typed) -> str | None:
    if not words:
        return None
    method = "rehearse" if typed.is_rehearsed else head.rpartition(" ")[2]
    method = {"row": "history"}.get(method, method)
    return f"project.entity({_quoted(words[0])}).{_method(method, words[1:], typed)}"


def _of_slice(head: str, words: Sequence[str], typed: _Typed) -> str | None:
    """Return the call for an item that is named by its entity and its slice; an id has no entity to call."""
    if len(words) != 1 or ":" in words[0] or words[0].startswith("/"):
        return None
    entity, _, name = words[0].partition("/")
    return _of_entity(head, [entity, name], typed) if name else None


def _method(name: str, words: Sequence[str], typed: _Typed) -> str:
    return f"{name}({', '.join((*map(_quoted, words), *typed.keywords))})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _items(head: str, words: Sequence[str], typed: _Typed) -> str | None:
    """Return the call for the items of the manifest, or for those that concern an entity."""
    del head
    if words or len(typed.keywords) > 1:
        return None
    if not typed.keywords:
        return "project.manifest.items()"
    name, _, entity = typed.keywords[0].partition("=")
    application = f'"lakewright/" + project.name + {_quoted("/" + entity[1:-1])}'
    return f"project.manifest.items({application})" if name == "entity" else None


def _records(head: str, words: Sequence[str], typed: _Typed) -> str | None:
    """Return the call for the records of an item, which takes its id."""
    del head
    if typed.keywords or len(words) > 1:
        return None
    is_id = bool(words) and (":" in words[0] or words[0].startswith("/"))
    return f"project.manifest.records({_quoted(words[0]) if is_id else 'item_id'})"


def _query(head: str, words: Sequence[str], typed: _Typed) -> str | None:
    return f"{_of_project(head, words, typed)}.show()" if len(words) == 1 and not typed.keywords else None


_CALLS: dict[str, Callable[[str, Sequence[str], _Typed], str | None]] = {
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
    "plan": _of_job,
    "process": _of_entity,
    "rebuild": _of_entity,
    "sql": _query,
    "status": _of_project,
    "undo": _of_entity,
}
