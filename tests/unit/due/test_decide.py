"""Decisions about subjects of one name, and of two people at once. No Spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from tests.unit.due.test_settled import opened

from lakewright.due.facts import Build, Decision, Entity, Facts, Kind, Output, Slice, Subject, Table, Verb
from lakewright.due.plan import Action, Code, Plan, Reason, State, Step, choices_of
from lakewright.due.planner import make_plan
from lakewright.due.words import plan_document
from lakewright.errors import LakewrightError, NotOffered
from lakewright.usecases.due import decide as module
from lakewright.usecases.due.decide import decide
from lakewright.usecases.due.decisions import read_decisions
from lakewright.usecases.due.take import plan_of_project


def asking(*subjects: Subject) -> Plan:
    """Return a plan that asks whether to keep something of each subject."""
    steps = (
        Step(
            str(number),
            Action.HOLD,
            each,
            Reason(Code.LATE_SLICE, {"slice": "s1.csv"}),
            State.NEEDS_DECISION,
            choices=choices_of(each, "1", (Verb.KEEP, Verb.DROP), Code.LATE_SLICE),
            instance={"day": "1"} if each.kind is Kind.TARGET else {},
        )
        for number, each in enumerate(subjects)
    )
    return Plan(tuple(steps))


ENTITY, TARGET = Subject("orders"), Subject("orders", kind=Kind.TARGET)


def test_an_entity_and_a_target_of_one_name_are_told_apart(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened(lake)
    monkeypatch.setattr(module, "plan_of_project", lambda _: asking(ENTITY, TARGET))
    with pytest.raises(NotOffered) as refused:
        decide(app, "orders", "keep", author="a", reason="r")
    assert refused.value.details == {"subjects": ["entity:orders", "target:orders"]}
    assert list(read_decisions(app)) == []
    assert decide(app, "target:orders", "keep", author="a", reason="r").subject == TARGET
    assert decide(app, "entity:orders", "drop", author="a", reason="r").subject == ENTITY
    monkeypatch.setattr(module, "plan_of_project", lambda _: asking(TARGET))
    assert decide(app, "orders", "keep", author="a", reason="r").subject == TARGET


def test_the_subject_of_a_step_names_its_instance() -> None:
    step, other = plan_document(asking(TARGET, Subject("orders", "s1.csv")))["steps"]
    named = {"kind": "target", "name": "orders", "part": "", "instance": {"day": "1"}, "slices": []}
    assert step["subject"] == named
    assert other["subject"]["slices"] == ["s1.csv"]
    assert step["cost"] == {"slices": 0, "bytes": 0}


def test_a_replay_that_lacks_files_offers_what_else_may_be_decided_of_its_cause() -> None:
    late, gone = Slice("b", "1"), Slice("c", "1")
    entity = Entity("orders", "", bronze={"b": late}, table=Table((Slice("a", "1"), gone), ""))
    placed = Decision(Subject("orders", "b"), Verb.PLACE, late.content)
    offered = [
        (each.decision.subject.part, each.verb, each.about)
        for each in make_plan(Facts((entity,), decisions=(placed,))).choices
    ]
    assert offered == [
        ("b", Verb.END, Code.LATE_SLICE),
        ("b", Verb.SKIP, Code.LATE_SLICE),
        ("c", Verb.SKIP, Code.FILES_GONE),
    ]


def test_what_is_to_be_read_is_counted_in_bytes(lake: Path) -> None:
    slice_ = lake / "lake/bronze/e0/2022-01-04.csv"
    slice_.write_text("id,n\n1,1\n")
    (step,) = plan_document(plan_of_project(opened(lake), ["e0"]))["steps"]
    assert step["cost"] == {"slices": 1, "bytes": slice_.stat().st_size}


LATE = "2021-12-31.csv"


def late(lake: Path) -> str:
    """Deliver a slice that is older than those in the table; return the subject that is asked about."""
    (lake / "lake/bronze/e0" / LATE).write_text("id,n\n1,1\n")
    return f"e0/{LATE}"


@pytest.mark.parametrize("first", ["place", "end", "skip"])
def test_of_two_who_decide_at_once_the_last_one_counts_or_is_refused(lake: Path, first: str) -> None:
    subject, begin = late(lake), Barrier(2)

    def decided(choice: str) -> str:
        app = opened(lake)
        begin.wait()
        try:
            return decide(app, subject, choice, author=choice, reason="r").verb.value
        except LakewrightError as error:  # the other one was faster
            return error.code
        finally:
            app.close()

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(decided, (first, "place")))
    app = opened(lake)
    recorded = [each.verb.value for each in read_decisions(app)]
    assert recorded, outcomes
    assert set(recorded) == {each for each in outcomes if each in ("place", "end", "skip")}
    asked = [step for step in plan_of_project(app).steps if step.state is State.NEEDS_DECISION]
    assert asked == []


def test_a_decision_whose_fact_has_changed_is_refused_and_nothing_is_recorded(lake: Path) -> None:
    subject = late(lake)
    (step,) = plan_of_project(opened(lake)).asked
    (lake / "lake/bronze/e0" / LATE).write_text("id,n\n1,1\n2,2\n")
    app = opened(lake)
    with pytest.raises(NotOffered, match="not what it was"):
        decide(app, subject, "place", author="a", reason="r", basis=step.choices[0].decision.basis)
    assert list(read_decisions(app)) == []
    assert [step.state for step in plan_of_project(app).steps] == [State.NEEDS_DECISION]


@pytest.mark.parametrize(
    ("foreign", "is_append", "verbs", "code"),
    [
        (2, False, [Verb.KEEP, Verb.DROP], Code.FOREIGN_ROWS),
        (2, True, [Verb.KEEP], Code.FOREIGN_ROWS),
        ("09dd", False, [Verb.KEEP, Verb.DROP], Code.OUTPUT_CHANGED),
    ],
    ids=["replaces", "appends", "files"],
)
def test_what_another_writer_changed_is_taken_back_only_by_a_build_that_replaces_it(
    foreign: int | str, is_append: bool, verbs: list[Verb], code: Code
) -> None:
    build = Build("d1", {}, "t@1")
    output = Output(TARGET, "d1", {}, mark="t@1", build=build, is_append=is_append, foreign=foreign)
    (found,) = make_plan(Facts(outputs=(output,))).findings
    assert (found.reason.code, [each.verb for each in found.choices]) == (code, verbs)
