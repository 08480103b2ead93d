"""D2: a traceback shows the message of an error, then once its place, what to do, and the call for it."""

from __future__ import annotations

import ast
import pickle
from inspect import signature
from traceback import format_exception_only
from typing import Any

import pytest

from lakewright import Manifest, Project
from lakewright.api import Entity
from lakewright.errors import (
    BackdatedError,
    Fault,
    ItemFailed,
    LakewrightError,
    Location,
    SpecError,
    UsageError,
)
from lakewright.errors.python_calls import python_words
from lakewright.spec.arguments import expand_arguments
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import ValueType
from lakewright.spec.models.job import Parameter

RESOLVE = "Fix the cause, then `lakewright manifest resolve orders/d1`."


def shown(error: LakewrightError) -> list[str]:
    return "".join(format_exception_only(error)).splitlines()[1:]


def test_a_traceback_shows_the_place_and_what_to_do_below_the_message() -> None:
    error = ItemFailed("orders/d1 failed", remedy=RESOLVE, location=Location("model/shop.yml", 3))
    assert shown(error) == [
        "where: model/shop.yml:3",
        f"do: {RESOLVE}",
        'in Python: project.entity("orders").resolve("d1")',
    ]
    assert shown(LakewrightError("nothing to be done")) == []


def test_a_remedy_that_changes_later_replaces_the_former_one_and_leaves_other_notes() -> None:
    error = UsageError("wrong", remedy="Try again.")
    error.add_note("a note of the caller")
    error.remedy = RESOLVE
    assert shown(error) == [
        "a note of the caller",
        f"do: {RESOLVE}",
        'in Python: project.entity("orders").resolve("d1")',
    ]
    error.remedy = None
    assert shown(error) == ["a note of the caller"]


def test_the_default_remedy_of_a_class_is_shown_with_the_argument_for_its_option() -> None:
    assert shown(BackdatedError("too early")) == [
        "do: Give a later processing time, or pass --allow-backdated.",
        "in Python: allow_backdated=True for --allow-backdated",
    ]


def test_faults_have_their_remedies_in_their_text_and_not_once_more() -> None:
    error = SpecError([Fault("no key", Location("a.yml", 1), remedy="did you mean 'id'?"), Fault("no name")])
    assert str(error) == "a.yml:1: no key (did you mean 'id'?)\nno name"
    assert shown(error) == ["no name"]  # the second line of the text


def test_an_error_comes_from_another_process_with_its_remedy_once() -> None:
    again = pickle.loads(pickle.dumps(ItemFailed("orders/d1 failed", remedy="Try again.")))
    assert (again.remedy, shown(again)) == ("Try again.", ["do: Try again."])


CALLS = [
    ("`lakewright manifest resolve orders/d1`", 'project.entity("orders").resolve("d1")'),
    ("`lakewright manifest resolve 'my orders/d 1'`", 'project.entity("my orders").resolve("d 1")'),
    ("`lakewright manifest requeue orders/a/b --late`", 'project.entity("orders").requeue("a/b", late=True)'),
    ("`lakewright manifest skip 7/d1`", 'project.entity("7").skip("d1")'),
    ("`lakewright manifest unskip 7/d1` first", 'project.entity("7").unskip("d1")'),
    ("`lakewright manifest accept orders/d1`", 'project.entity("orders").accept("d1")'),
    ("`lakewright undo orders d1 --requeue --yes`", 'project.entity("orders").undo("d1", requeue=True)'),
    ("`lakewright rebuild orders --from d1`", 'project.entity("orders").rebuild(from_slice="d1")'),
    ("`lakewright process orders d1 --late`", 'project.entity("orders").process("d1", late=True)'),
    ("`lakewright process orders d1 --rehearse`", 'project.entity("orders").rehearse("d1")'),
    ("`lakewright history row orders 7 NL`", 'project.entity("orders").history("7", "NL")'),
    ("`lakewright job daily build day=d1 --resume`", 'project.run("daily", "build", "day=d1", resume=True)'),
    ("`lakewright plan daily build`", 'project.plan("daily", "build")'),
    ("`lakewright status`", "project.status()"),
    ("`lakewright history`", "project.history()"),
]


@pytest.mark.parametrize(("typed", "call"), CALLS)
def test_a_command_to_type_is_told_as_a_call_that_exists(typed: str, call: str) -> None:
    assert python_words(f"Do {typed}.") == call
    made = ast.parse(call, mode="eval").body
    assert isinstance(made, ast.Call)
    assert isinstance(made.func, ast.Attribute)
    owner: Any = Project if isinstance(made.func.value, ast.Name) else Entity
    values = [ast.literal_eval(each) for each in made.args]
    signature(getattr(owner, made.func.attr)).bind(
        None, *values, **{each.arg or "": 0 for each in made.keywords}
    )


@pytest.mark.parametrize(
    "remedy",
    [
        "Give it an owner.",
        "`lakewright doctor --repair`",
        "`lakewright manifest resolve file:///lake/orders/d1`",
        "`lakewright manifest resolve /lake/orders/d1`",
        "`lakewright process orders --conf a=b`",
        "`lakewright manifest resolve 'orders`",
        "`lakewright plan`",
        "`lakewright manifest ls orders`",
        "`lakewright history show r1`",
        "Type --help.",
    ],
)
def test_what_python_has_no_call_for_is_left_to_the_terminal(remedy: str) -> None:
    assert python_words(remedy) is None


def test_the_items_of_the_manifest_are_its_own() -> None:
    assert python_words("`lakewright manifest ls` lists them.") == "project.manifest.items()"
    # What follows is typed after it, or instead.
    requeue, skip = "`lakewright manifest requeue o/d1 --late`", "`lakewright manifest skip o/d1`"
    assert python_words(
        f"{requeue} applies it and makes its rows the current ones, {skip} leaves it out"
    ) == ('project.entity("o").requeue("d1", late=True), or project.entity("o").skip("d1")')
    again, accept, rebuild = (
        "`lakewright manifest requeue o/d1`",
        "`lakewright manifest accept o/d1`",
        "`lakewright rebuild o --include d1`",
    )
    remedy = (
        f"Process it again with {again}, or keep it with {accept}. {again}, then {rebuild} instead places it."
    )
    assert python_words(remedy) == (
        'project.entity("o").requeue("d1"), or project.entity("o").accept("d1"), or '
        'project.entity("o").requeue("d1"), then project.entity("o").rebuild(include=["d1"])'
    )
    assert python_words("`lakewright manifest ls --entity orders` lists them.") == (
        'project.manifest.items("lakewright/" + project.name + "/orders")'
    )
    assert python_words("`lakewright manifest show orders/d1` tells.") == "project.manifest.records(item_id)"
    assert python_words("`lakewright manifest show file:///lake/orders/d1`") == (
        'project.manifest.records("file:///lake/orders/d1")'
    )
    assert callable(Manifest.items)
    assert callable(Manifest.records)


def test_a_query_is_shown() -> None:
    typed = "`lakewright sql 'SHOW TABLES'` lists the project's tables."
    assert python_words(typed) == 'project.sql("SHOW TABLES").show()'
    assert python_words("Compare two versions of the table with `lakewright sql --as-of`.") is None


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
        assert shown(missing.value)[-1] == f"in Python: {words}"


def test_wrong_arguments_have_the_code_that_json_has() -> None:
    """`-o json` prints the faults, whose code was `usage`, and Python the error, whose code was `spec`."""
    with pytest.raises(SpecError) as wrong:
        expand_arguments([Parameter(name="t")], ["u=1"], Scope())
    assert wrong.value.code == wrong.value.as_fault().code == "usage"
    assert {fault.code for fault in wrong.value.faults} == {"usage"}
    assert SpecError([Fault("no key"), Fault("no value", code="usage")]).code == SpecError.code == "spec"


def test_options_in_a_sentence_are_told_as_arguments() -> None:
    assert python_words("Pass the folder with --project.") == "Project.load(folder) for --project"
    either = "Give --cascade to process them again as well, or --late to apply this one after them."
    assert python_words(either) == "cascade=True for --cascade; late=True for --late"
    reload = "reload it with --strategy full --allow-data-loss."
    assert python_words(reload) == (
        'strategy="full" for --strategy full; allow_data_loss=True for --allow-data-loss'
    )


def test_a_call_and_an_option_beside_it_are_both_told() -> None:
    time = "2024-05-02T00:00:01+00:00"
    typed = f"Give a later time: `lakewright process orders d1 --processing-time {time}`."
    assert python_words(f"{typed} --allow-backdated permits the earlier one.") == (
        f'project.entity("orders").process("d1", processing_time="{time}"); '
        "allow_backdated=True for --allow-backdated"
    )
