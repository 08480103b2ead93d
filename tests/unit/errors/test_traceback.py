"""D2: a traceback shows the message of an error, then once its place, what to do, and the call for it."""

from __future__ import annotations

import ast
import pickle
from inspect import signature
from traceback import format_exception_only
from typing import Any

import pytest

from lakewright import Entity, Manifest, Project
from lakewright.errors import (
    BackdatedError,
    Fault,
    ItemFailed,
    LakewrightError,
    Location,
    SpecError,
    UsageError,
)
from lakewright.errors.phrase import Command, Option, Phrase
from lakewright.errors.surfaces import in_python
from lakewright.spec.arguments import expand_arguments
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import ValueType
from lakewright.spec.models.job import Parameter

RESOLVE = Phrase("Fix the cause, then ", Command("manifest", "resolve", "orders/d1"), ".")


def shown(error: LakewrightError) -> list[str]:
    return "".join(format_exception_only(error)).splitlines()[1:]


def test_a_traceback_shows_the_place_and_what_to_do_below_the_message() -> None:
    error = ItemFailed("orders/d1 failed", remedy=RESOLVE, location=Location("model/shop.yml", 3))
    assert shown(error) == [
        "where: model/shop.yml:3",
        f"do: {RESOLVE}",
        'in Python: Fix the cause, then project.entity("orders").resolve("d1").',
    ]
    assert shown(LakewrightError("nothing to be done")) == []


def test_a_remedy_that_changes_later_replaces_the_former_one_and_leaves_other_notes() -> None:
    error = UsageError("wrong", remedy="Try again.")
    error.add_note("a note of the caller")
    error.remedy = RESOLVE
    assert shown(error) == [
        "a note of the caller",
        f"do: {RESOLVE}",
        'in Python: Fix the cause, then project.entity("orders").resolve("d1").',
    ]
    error.remedy = None
    assert shown(error) == ["a note of the caller"]


def test_the_default_remedy_of_a_class_is_shown_with_the_argument_for_its_option() -> None:
    assert shown(BackdatedError("too early")) == [
        "do: Give a later processing time, or pass --allow-backdated.",
        "in Python: Give a later processing time, or pass allow_backdated=True.",
    ]


def test_faults_have_their_remedies_in_their_text_and_not_once_more() -> None:
    error = SpecError([Fault("no key", Location("a.yml", 1), remedy="did you mean 'id'?"), Fault("no name")])
    assert str(error) == "a.yml:1: no key (did you mean 'id'?)\nno name"
    assert shown(error) == ["no name"]  # the second line of the text


def test_an_error_comes_from_another_process_with_its_remedy_once() -> None:
    again = pickle.loads(pickle.dumps(ItemFailed("orders/d1 failed", remedy=RESOLVE)))
    assert (again.remedy, shown(again)[0]) == (RESOLVE, f"do: {RESOLVE}")
    assert again.remedy.parts[1].argv == ("manifest", "resolve", "orders/d1")


CALLS = [
    ("manifest resolve orders/d1", 'project.entity("orders").resolve("d1")'),
    ("manifest requeue orders/a/b --late", 'project.entity("orders").requeue("a/b", late=True)'),
    ("manifest skip 7/d1", 'project.entity("7").skip("d1")'),
    ("manifest unskip 7/d1", 'project.entity("7").unskip("d1")'),
    ("manifest accept orders/d1", 'project.entity("orders").accept("d1")'),
    ("undo orders d1 --requeue --yes", 'project.entity("orders").undo("d1", requeue=True)'),
    ("rebuild orders --from d1", 'project.entity("orders").rebuild(from_slice="d1")'),
    ("rebuild orders --include d1 --include d2", 'project.entity("orders").rebuild(include=["d1", "d2"])'),
    ("process orders d1 --late", 'project.entity("orders").process("d1", late=True)'),
    ("process orders d1 --rehearse", 'project.entity("orders").rehearse("d1")'),
    ("history row orders 7 NL", 'project.entity("orders").history("7", "NL")'),
    ("job daily build day=d1 --resume", 'project.run("daily", "build", "day=d1", resume=True)'),
    ("plan daily build", 'project.plan("daily", "build")'),
    ("status", "project.status()"),
    ("history", "project.history()"),
]


@pytest.mark.parametrize(("typed", "call"), CALLS)
def test_a_command_to_type_is_told_as_a_call_that_exists(typed: str, call: str) -> None:
    assert in_python(Phrase("Do ", Command(*typed.split()), ".")) == f"Do {call}."
    made = ast.parse(call, mode="eval").body
    assert isinstance(made, ast.Call)
    assert isinstance(made.func, ast.Attribute)
    owner: Any = Project if isinstance(made.func.value, ast.Name) else Entity
    values = [ast.literal_eval(each) for each in made.args]
    signature(getattr(owner, made.func.attr)).bind(
        None, *values, **{each.arg or "": 0 for each in made.keywords}
    )


@pytest.mark.parametrize(
    "typed",
    [
        "doctor --repair",
        "manifest resolve file:///lake/orders/d1",
        "manifest resolve /lake/orders/d1",
        "process orders --conf a=b",
        "manifest ls orders",
        "history show r1",
    ],
)
def test_what_python_has_no_call_for_is_left_to_the_terminal(typed: str) -> None:
    assert in_python(Phrase("Do ", Command(*typed.split()), ".")) is None
    status = Phrase(Command(*typed.split()), ", then ", Command("status"))
    assert in_python(status) == f"`lakewright {typed}`, then project.status()"


def test_a_text_without_commands_is_the_same_in_python() -> None:
    assert in_python("Give it an owner.") is in_python(Phrase("Type ", Option("--help"), ".")) is None


def test_the_items_of_the_manifest_are_its_own() -> None:
    calls = {
        "ls": "project.manifest.items()",
        "ls --entity orders": 'project.manifest.items("lakewright/" + project.name + "/orders")',
        "show orders/d1": "project.manifest.records(item_id)",
        "show file:///lake/orders/d1": 'project.manifest.records("file:///lake/orders/d1")',
    }
    for typed, call in calls.items():
        assert in_python(Phrase(Command("manifest", *typed.split()))) == call
    assert callable(Manifest.items)
    assert callable(Manifest.records)


def test_a_query_is_shown() -> None:
    assert in_python(Phrase(Command("sql", "SHOW TABLES"))) == 'project.sql("SHOW TABLES").show()'
    assert in_python(Phrase(Command("sql", "--as-of"))) is None


def test_each_command_stands_in_its_place_in_the_sentence() -> None:
    undo, process = Command("undo", "orders", "d 1"), Command("process", "orders")
    assert in_python(Phrase(undo, ", then ", process, " takes it again.")) == (
        'project.entity("orders").undo("d 1"), then project.entity("orders").process() takes it again.'
    )


def test_arguments_of_a_job_are_told_as_values_of_python() -> None:
    known = {
        ValueType.STRING: 't="text"',
        ValueType.INTEGER: "t=1, or t=Range(…, …)",
        ValueType.FLOAT: "t=1.5, or t=Range(…, …)",
        ValueType.DECIMAL: "t=1.5, or t=Range(…, …)",
        ValueType.BOOLEAN: "t=True",
        ValueType.DATE: "t=date(2022, 1, 31), or t=Range(…, …)",
        ValueType.TIMESTAMP: "t=datetime(2022, 1, 31, 12, tzinfo=UTC), or "
        "t=Range(…, …, step=timedelta(hours=1))",
        ValueType.DURATION: "t=timedelta(hours=1), or t=Range(…, …)",
    }
    assert set(known) == set(ValueType)
    for kind, words in known.items():
        with pytest.raises(SpecError) as missing:
            expand_arguments([Parameter(name="t", type=kind)], [], Scope())
        assert shown(missing.value)[-1] == f"in Python: t is of type {kind}: write {words}"


def test_wrong_arguments_have_the_code_that_json_has() -> None:
    """`-o json` prints the faults, whose code was `usage`, and Python the error, whose code was `spec`."""
    with pytest.raises(SpecError) as wrong:
        expand_arguments([Parameter(name="t")], ["u=1"], Scope())
    assert wrong.value.code == wrong.value.as_fault().code == "usage"
    assert {fault.code for fault in wrong.value.faults} == {"usage"}
    assert SpecError([Fault("no key"), Fault("no value", code="usage")]).code == SpecError.code == "spec"


def test_options_in_a_sentence_are_told_as_arguments() -> None:
    known = {
        "--project": "Project.load(folder)",
        "--cascade": "cascade=True",
        "--strategy full": 'strategy="full"',
        "--allow-data-loss": "allow_data_loss=True",
        "-vv": "error.__cause__",
    }
    for typed, argument in known.items():
        assert in_python(Phrase("Give ", Option(typed), ".")) == f"Give {argument}."
    assert in_python(Phrase("Give ", Option("-D", "definitions={…}"), ".")) == "Give definitions={…}."
