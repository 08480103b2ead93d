"""D2: what a command takes, its method takes; what only one of them has, has its reason here."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from inspect import Parameter, signature
from types import SimpleNamespace
from typing import Any, cast
from zoneinfo import ZoneInfo

import click
import pytest

from lakewright import Entity, Project
from lakewright.api import definitions
from lakewright.api.arguments import key_text
from lakewright.cli.entry import root
from lakewright.plan.permissions import Permissions

PYTHON_NAMES = {
    "age": "age",
    "is_rehearsed": "rehearse",
    "is_skipped": "requeue",
    "key": "key",
    "name": "job",
    "rows": "rows",
    "slice_name": "slice_name",
    "over_foreign": "over_foreign",
}
"""Names that differ: of the command line, and of Python."""

NOT_IN_PYTHON = {
    "author": "the user of the process is the author",
    "detailed_exitcode": "`Plan.has_work` tells it",
    "despite_faults": "an argument of `Project.load`, since the files are read there",
    "yes": "nobody is asked in Python",
    "entity": "the entity has the method",
    "is_rehearsed": "`Entity.rehearse` is a method of its own",
    "rows": "an option of rehearsals, which are a method of their own",
    "dry_run": "`Project.plan` is the dry run of `Project.run`, and `check=True` that of a rebuild",
    "jobs": "of `plan`: how many targets run at once changes nothing about what runs",
}

NOT_ON_THE_COMMAND_LINE = {
    "arguments": "texts of parameters are `[PARAM=VALUE]...` there",
    "values": "values of parameters are `[PARAM=VALUE]...` there",
    "on_event": "progress is printed there",
}

PAIRS: list[tuple[str, Callable[..., Any]]] = [
    ("job", Project.run),
    ("plan", Project.plan),
    ("status", Project.status),
    ("history", Project.history),
    ("history row", Entity.history),
    ("process", Entity.process),
    ("undo", Entity.undo),
    ("rebuild", Entity.rebuild),
]

WITHOUT_METHOD = {
    "history show": "a result has its targets, and `Project.history` the ids to type",
    "history prune": "for an operator",
}


def options_of(path: str) -> set[str]:
    command: click.Command = root
    context = click.Context(root)
    for word in path.split():
        assert isinstance(command, click.Group)
        found = command.get_command(context, word)
        assert found is not None
        command = found
    of_all = {"project", "profiles", "definitions", "conf", "output", "log_format", "verbosity", "quiet"}
    names = {each.name or "" for each in command.params} - of_all - {"is_alone", "help", "version"}
    return {PYTHON_NAMES.get(name, name) if name not in NOT_IN_PYTHON else name for name in names}


@pytest.mark.parametrize(("path", "method"), PAIRS, ids=[path for path, _ in PAIRS])
def test_a_method_takes_what_its_command_takes(path: str, method: Callable[..., Any]) -> None:
    typed = options_of(path)
    called = {name for name in signature(method).parameters if name != "self"}
    assert typed - called <= NOT_IN_PYTHON.keys(), "not in Python, without a reason"
    assert called - typed <= NOT_ON_THE_COMMAND_LINE.keys(), "not on the command line, without a reason"


def test_each_reason_is_needed() -> None:
    typed = {
        name for path, method in PAIRS for name in options_of(path) - signature(method).parameters.keys()
    }
    called = {
        name
        for path, method in PAIRS
        for name in signature(method).parameters.keys() - options_of(path) - {"self"}
    }
    assert (typed, called) == (set(NOT_IN_PYTHON), set(NOT_ON_THE_COMMAND_LINE))


def test_rehearsals_take_what_process_takes() -> None:
    rehearse, process = (signature(each).parameters for each in (Entity.rehearse, Entity.process))
    assert process.keys() - rehearse.keys() == {"wait"}, "a rehearsal waits for nobody"
    assert rehearse.keys() - process.keys() == {"rows"}
    assert rehearse["slice_name"].default is Parameter.empty


@pytest.mark.parametrize(
    ("given", "text"),
    [(date(2024, 5, 1), "2024-05-01"), (datetime(2024, 5, 1, 6, tzinfo=UTC), "2024-05-01T06:00:00+00:00")],
)
def test_processing_hands_on_the_slice_the_time_and_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, given: date, text: str
) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr(
        definitions, "process_entity", lambda *args, **options: seen.update(options, args=args)
    )
    lake = SimpleNamespace(zone=ZoneInfo("Europe/Amsterdam"))
    opened: Any = SimpleNamespace(app=SimpleNamespace(project=SimpleNamespace(lake=lake)))
    orders = Entity(cast("Any", SimpleNamespace(id="7")), opened)
    orders.process("d1", processing_time=given, late=True, wait=True)
    assert seen == {
        "args": (opened, "7", "d1"),
        "processing_time": text,
        "strategy": None,
        "permissions": Permissions(allow_late=True),
        "wait": True,
    }


def test_a_key_is_compared_as_spark_writes_it() -> None:
    times = datetime(2024, 5, 1, 6, tzinfo=UTC), datetime(2024, 5, 1, 6)
    assert list(map(key_text, times)) == ["2024-05-01 06:00:00"] * 2
    assert [key_text(each) for each in (7, True, date(2024, 5, 1), "x")] == ["7", "true", "2024-05-01", "x"]
