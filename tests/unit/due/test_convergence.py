"""Whatever has happened to a lake: taking what is due, and deciding what is asked, makes it right.

The lake is a fake; what its tables should be is told by a few laws about the end, not by how plans are made.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from tests.unit.due.lake import FakeLake, Gold, Killed, Silver, digest

from lakewright.due.facts import (
    Build,
    Decision,
    Effect,
    Facts,
    Foreign,
    Kind,
    Lock,
    Output,
    Record,
    RecordState,
    Slice,
    Subject,
    Verb,
)
from lakewright.due.plan import Action, Code, Finding, Plan, State, Step
from lakewright.due.planner import make_plan
from lakewright.spec.grants import Grant

HISTORIES = int(os.environ.get("LAKEWRIGHT_HISTORIES", "2000"))
BATCHES = 20
MOST_PLANS = 60
ALL = frozenset(Grant)


def new_lake(chance: Random) -> FakeLake:
    silver = {}
    for name in ("orders", "things")[: chance.randint(1, 2)]:
        silver[name] = Silver(
            name,
            chance.choice(list(Effect)),
            chance.choice([None, None, Verb.PLACE, Verb.END, Verb.SKIP]),
            chance.choice([None, None, Verb.TAKE, Verb.KEEP]),
            chance.choice([1, 100]),
        )
    places, gold = list(silver), {}
    for number in range(chance.randint(1, 3)):
        name = f"t{number}"
        inputs = tuple(chance.sample(places, chance.randint(1, min(2, len(places)))))
        of_day = [None] if chance.random() < 0.6 else [f"{day:02}" for day in range(1, 4)]
        for day in of_day:
            slices = {each: frozenset({day}) for each in inputs if each in silver} if day else {}
            subject = Subject(name, day or "")
            gold[subject] = Gold(
                subject,
                inputs,
                slices,
                is_append=chance.random() < 0.3,
                is_checked=chance.random() < 0.3,
                only_if_empty=chance.random() < 0.1,
            )
        places.append(name)
    return FakeLake(silver, gold)


def deliver(lake: FakeLake, chance: Random) -> None:
    silver = chance.choice(list(lake.silver.values()))
    new = [name for day in range(1, 7) if (name := f"{day:02}") not in {**silver.bronze, **silver.archive}]
    days = new[:1] if chance.random() < 0.7 else new
    if days:
        silver.bronze[chance.choice(days)] = content(chance)


def content(chance: Random) -> str:
    return f"{chance.randrange(10**6)}{chance.choice(['', '', '', '', 'odd', 'bad', 'many'])}"


def correct(lake: FakeLake, chance: Random) -> None:
    silver = chance.choice(list(lake.silver.values()))
    if silver.bronze:
        silver.bronze[chance.choice(list(silver.bronze))] = content(chance)


def archive(lake: FakeLake, chance: Random) -> None:
    silver = chance.choice(list(lake.silver.values()))
    done = [name for name, each in silver.records.items() if each.state is RecordState.PROCESSED]
    for name in done[: chance.randint(1, 2)]:
        if name in silver.bronze:
            silver.archive[name] = silver.bronze.pop(name)


def withdraw(lake: FakeLake, chance: Random) -> None:
    """Take a slice out of bronze that was recorded, and never applied."""
    silver = chance.choice(list(lake.silver.values()))
    held = {each.name for each in silver.log if isinstance(each, Slice)}
    open_ = (None, RecordState.FAILED, RecordState.WAITING)
    states = {name: silver.records[name].state if name in silver.records else None for name in silver.bronze}
    left = [name for name, state in states.items() if state in open_ and name not in held]
    for name in left[:1]:
        silver.archive[name] = silver.bronze.pop(name)
        if states[name] is not RecordState.FAILED:
            silver.records[name] = Record(RecordState.WAITING, silver.archive[name])


def skip_in_manifest(lake: FakeLake, chance: Random) -> None:
    silver = chance.choice(list(lake.silver.values()))
    new = [name for name in silver.bronze if name not in silver.records]
    held = {each.name for each in silver.log if isinstance(each, Slice)}
    for name in [each for each in new if each not in held][:1]:
        silver.records[name] = Record(RecordState.SKIPPED, silver.bronze[name])


def bring_back(lake: FakeLake, chance: Random) -> None:
    silver = chance.choice(list(lake.silver.values()))
    silver.bronze.update(silver.archive)
    silver.archive.clear()


def skip(lake: FakeLake, chance: Random) -> None:
    silver = chance.choice(list(lake.silver.values()))
    for name, text in list(silver.bronze.items())[:1]:
        lake.decisions.append(Decision(Subject(silver.name, name), Verb.SKIP, text))


def remove(lake: FakeLake, chance: Random) -> None:
    silver = chance.choice(list(lake.silver.values()))
    silver.is_there, silver.log, silver.made_as = False, [], None
    silver.id += 1


def empty(lake: FakeLake, chance: Random) -> None:
    """Empty or remove a table as a person does, after which all its slices are to be processed again."""
    silver = chance.choice(list(lake.silver.values()))
    done = [name for name, each in silver.records.items() if each.state is RecordState.PROCESSED]
    if done:
        silver.log, silver.made_as, silver.is_there = [], None, chance.random() < 0.5
        silver.emptied_by = f"{chance.randrange(10**6)}"
        for name in done:
            silver.records[name] = Record(RecordState.WAITING, silver.records[name].content)


def restore(lake: FakeLake, chance: Random) -> None:
    silver = chance.choice(list(lake.silver.values()))
    silver.log = silver.log[: chance.randint(0, len(silver.log))]


def write(lake: FakeLake, chance: Random) -> None:
    silver = chance.choice(list(lake.silver.values()))
    if silver.log and silver.is_there:
        silver.log.append(Foreign(chance.randrange(10**6)))


def lose_manifest(lake: FakeLake, chance: Random) -> None:
    silver = chance.choice(list(lake.silver.values()))
    kept = list(silver.records.items())[: chance.choice([0, 1])]
    silver.records, silver.emptied_by = dict(kept), ""


def redeclare(lake: FakeLake, chance: Random) -> None:
    silver = chance.choice(list(lake.silver.values()))
    silver.digest = f"d{int(silver.digest[1:]) + 1}"


def redefine(lake: FakeLake, chance: Random) -> None:
    name = chance.choice(list(lake.gold)).name
    version = digest(chance.random())
    for each in lake.gold.values():
        each.definition = version if each.subject.name == name else each.definition


def disturb_gold(lake: FakeLake, chance: Random) -> None:
    gold = chance.choice(list(lake.gold.values()))
    if gold.rows is None:
        return
    how = chance.choice(["gone", "withdrawn", "changed"])
    gold.rows = digest(chance.random()) if how == "changed" else None
    gold.is_withdrawn = how == "withdrawn"


def lock(lake: FakeLake, chance: Random) -> None:
    silver = chance.choice(list(lake.silver.values()))
    parts = [*silver.bronze, ""]
    is_dead, is_kept = chance.random() < 0.5, chance.random() < 0.3
    lake.locks[Subject(silver.name, chance.choice(parts))] = Lock("other", is_dead, is_kept)


def forget_instance(lake: FakeLake, chance: Random) -> None:
    """Let nothing tell which run takes a slice, until somebody declares it."""
    silver = chance.choice(list(lake.silver.values()))
    silver.unclaimed = tuple(list(silver.bronze)[-1:])


def work(lake: FakeLake, chance: Random) -> None:
    """Take what is due, and perhaps be killed meanwhile."""
    try:
        for step in make_plan(lake.observe()).ready:
            if not lake.take(step, chance, frozenset(), may_be_killed=True):
                return
    except Killed:
        pass


EVENTS: tuple[Callable[[FakeLake, Random], None], ...] = (
    *(deliver,) * 6,
    *(work,) * 5,
    correct,
    archive,
    withdraw,
    bring_back,
    skip,
    skip_in_manifest,
    remove,
    empty,
    restore,
    write,
    lose_manifest,
    redeclare,
    redefine,
    disturb_gold,
    lock,
    forget_instance,
)


def apply(lake: FakeLake, chance: Random, grants: frozenset[Grant]) -> Plan:
    """Take what is ready, plan by plan, until nothing is; return the last plan."""
    for _ in range(MOST_PLANS):
        plan = make_plan(lake.observe(), grants)
        check_shape(plan)
        if not plan.ready:
            return plan
        done: set[str] = set()
        has_failed = False
        for step in plan.ready:
            if not done.issuperset(step.after):
                continue  # what it follows has failed
            if lake.take(step, chance, grants, may_be_killed=False):
                done.add(step.id)
            else:
                has_failed = True
        if not has_failed:
            after = make_plan(lake.observe(), grants)
            assert after.ready == (), "a plan that was taken leaves nothing due"
    raise AssertionError("it does not end")


def check_shape(plan: Plan) -> None:
    ids = [step.id for step in plan.steps]
    assert len(set(ids)) == len(ids), ids
    for number, step in enumerate(plan.steps):
        assert set(step.after) <= set(ids[:number]), "a step stands before one that it follows"
        is_asked = step.state in (State.NEEDS_DECISION,)
        assert not is_asked or step.choices, "there is something to decide, and no choice"
        if step.state is State.READY:
            assert step.action is not Action.HOLD


def settle(lake: FakeLake, chance: Random) -> Plan:
    """Take what is due and decide what is asked, until neither is left."""
    grants: frozenset[Grant] = frozenset()
    for _ in range(MOST_PLANS):
        plan = apply(lake, chance, grants)
        asked: list[Step | Finding] = [step for step in plan.steps if step.choices]
        emptied = (each for each in plan.findings if each.reason.code is Code.WITHDRAWN)
        asked += [each for each in emptied if chance.random() < 0.5]
        is_consent = any(step.state is State.NEEDS_CONSENT for step in plan.steps)
        if is_consent and chance.random() < 0.3:
            grants = ALL
        elif asked:
            about = chance.choice(asked)
            choice = chance.choice(about.choices)
            lake.decisions.append(choice.decision)
            if choice.about is Code.FAILED_SLICE and choice.verb is Verb.RETRY:
                # Whoever retries has mended something.
                silver = lake.silver[about.subject.name]
                silver.bronze[about.subject.part] = f"{chance.randrange(10**6)}"
        elif is_consent:
            grants = ALL
        elif any(step.reason.code is Code.LOCKED for step in plan.steps):
            lake.locks.clear()
        elif any(step.reason.code is Code.UNCLAIMED for step in plan.steps):
            for silver in lake.silver.values():
                silver.unclaimed = ()
        else:
            return plan
    raise AssertionError("it does not end")


def check_silver(lake: FakeLake, silver: Silver, plan: Plan) -> None:
    left = [step for step in plan.steps if step.subject.name == silver.name]
    noticed = {each.reason.code for each in plan.findings if each.subject.name == silver.name}
    if Code.WITHDRAWN in noticed:
        assert not left
        assert silver.log == []
        return
    if left or Code.TABLE_GONE in noticed:
        assert all(step.reason.code in (Code.FILES_GONE, Code.FAILED_BEFORE) for step in left), left
        return
    held = [each for each in silver.log if isinstance(each, Slice)]
    names = [each.name for each in held]
    assert len(set(names)) == len(names), "a slice is in the table twice"
    decided: dict[tuple[str, str], Verb] = {}
    for each in lake.decisions:
        if each.subject.name == silver.name:
            decided[each.subject.part, each.basis] = each.verb
    for name, text in silver.bronze.items():
        verb = decided.get((name, text))
        is_held, own = name in names, next((e.content for e in held if e.name == name), None)
        record = silver.records.get(name)
        is_skipped = record is not None and record.state is RecordState.SKIPPED
        may_be_out = verb is Verb.SKIP or (is_skipped and verb in (None, Verb.KEEP))
        may_be_out |= silver.late is Verb.SKIP and verb not in (Verb.PLACE, Verb.END)
        assert is_held or may_be_out, f"{name} is lost"
        if is_held and own != text:
            is_kept = verb in (Verb.KEEP, Verb.SKIP) or silver.changed is Verb.KEEP
            assert is_kept, f"{name} is not the corrected one"
        if verb is Verb.SKIP and silver.effect is not Effect.LAST:
            assert own != text, f"{name} is there though it was skipped"
    ends = {part for (part, _), verb in decided.items() if verb is Verb.END}
    may_end = silver.late is Verb.END or silver.effect is Effect.ANY_ORDER
    ordered = [name for name in names if name not in ends and not may_end]
    assert ordered == sorted(ordered), "slices are out of order"
    if held:
        assert silver.made_as == silver.digest, "rows are of another declaration"
    for slice_ in held:
        record = silver.records.get(slice_.name)
        is_right = record is not None and record.content == slice_.content
        is_skipped = decided.get((slice_.name, slice_.content)) is Verb.SKIP
        assert is_right or is_skipped, f"{slice_.name} is unrecorded"
    if not silver.is_there:
        out = {name for name, each in silver.records.items() if each.state is RecordState.SKIPPED}
        assert all(name in out or decided.get((name, text)) for name, text in silver.bronze.items())


def check_gold(lake: FakeLake, gold: Gold, plan: Plan) -> None:
    asked = {step.subject for step in plan.steps} | {each.subject for each in plan.findings}
    if gold.subject in asked:
        return
    assert gold.rows == lake.built(gold), f"{gold.subject} is not built from what is there"
    assert not gold.is_checked or gold.verdict is not None


@pytest.mark.parametrize("batch", range(BATCHES))
def test_taking_what_is_due_and_deciding_what_is_asked_makes_a_lake_right(batch: int) -> None:
    for seed in range(batch, HISTORIES, BATCHES):
        chance = Random(seed)
        lake = new_lake(chance)
        try:
            for _ in range(chance.randint(3, 25)):
                chance.choice(EVENTS)(lake, chance)
            plan = settle(lake, chance)
            for silver in lake.silver.values():
                check_silver(lake, silver, plan)
            for gold in lake.gold.values():
                check_gold(lake, gold, plan)
            assert apply(lake, chance, ALL).ready == ()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error


def test_records_without_a_table_are_no_reason_to_write_rows_again_unasked() -> None:
    silver = Silver("orders", Effect.IN_ORDER, None, None, 100)
    silver.bronze = {"01": "a"}
    silver.records = {"01": Record(RecordState.PROCESSED, "a")}
    silver.is_there = False
    lake = FakeLake({"orders": silver}, {})
    (step,) = make_plan(lake.observe()).steps
    assert (step.reason.code, [each.verb for each in step.choices]) == (
        Code.TABLE_GONE,
        [Verb.NEW, Verb.WAIT],
    )


def test_an_instance_that_nobody_wants_is_left_alone_until_a_run_builds_it() -> None:
    """Rules of apply, "Decisions and grants": a wanted instance nobody needs any more."""
    instance = Subject("revenue", "day=1", Kind.TARGET)
    output = Output(instance, "v1", {"orders": "2"}, instance={"day": "1"})
    (step,) = make_plan(Facts(outputs=(output,))).steps
    assert (step.state, [each.verb for each in step.choices]) == (State.READY, [Verb.WAIVE])
    waived = (step.choices[0].decision,)
    plan = make_plan(Facts(outputs=(output,), decisions=waived))
    (finding,) = plan.findings
    assert (plan.steps, finding.reason.code) == ((), Code.WAIVED)
    (again,) = finding.choices
    (step,) = make_plan(Facts(outputs=(output,), decisions=(*waived, again.decision))).steps
    assert step.action is Action.BUILD
    built = replace(output, build=Build("v1", {"orders": "1"}, "x"), mark="x")
    (step,) = make_plan(Facts(outputs=(built,), decisions=waived)).steps
    assert step.reason.code is Code.INPUT_MOVED
