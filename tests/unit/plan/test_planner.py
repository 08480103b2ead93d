"""Plans: who runs, in which order and why. `lifecycles-and-phases.md`, "Jobs & Lifecycles"."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from lakewright.errors import Fault
from lakewright.plan.dirtiness import (
    BuildPolicy,
    Dirtiness,
    all_processed,
    build_dirtiness,
    create_dirtiness,
    entity_dirtiness,
)
from lakewright.plan.graph import Node
from lakewright.plan.last_build import NOTHING, LastBuild
from lakewright.plan.observation import Answer, Hold, Observation, TableChange
from lakewright.plan.phase import Phase, phases_until
from lakewright.plan.planner import MAY_BE_ADDED, Candidate, Instance, PlanRequest, build_plan
from lakewright.plan.reason import Code, note
from lakewright.plan.resource import Resource
from lakewright.plan.status import Planned
from lakewright.plan.step import Added, Append, Plan, done_reasons
from lakewright.spec.models.job import Execution
from lakewright.spec.reason import Reason

BUILD_ONLY = PlanRequest(phases=(Phase.BUILD,))


def dirty(phase: Phase, observation: Observation) -> Dirtiness:
    if phase is Phase.CREATE:
        return create_dirtiness(observation)
    if phase is Phase.BUILD:
        return build_dirtiness(BuildPolicy.IF_EMPTY, observation, is_partitioned=False)
    return Dirtiness.yes(Reason(Code.ALWAYS_RUNS, {"phase": phase}))


def compared(phase: Phase, observation: Observation) -> Dirtiness:
    if phase is Phase.CREATE:
        return create_dirtiness(observation)
    return build_dirtiness(BuildPolicy.IF_CHANGED, observation, is_partitioned=True)


def target(
    name: str,
    *,
    filled: bool = False,
    requires: str = "",
    provides: str = "",
    leftover: str = "",
    **node: object,
) -> Candidate:
    place = Node(
        name,
        requires=frozenset({Resource.file(requires)} if requires else ()),
        provides=frozenset({Resource.file(provides)} if provides else ()),
        **node,  # type: ignore[arg-type]  # links, passed through
    )
    found = Observation(f"file:{name}", exists=Answer.of(filled), filled=Answer.of(filled))
    phases = (Phase.CREATE, Phase.BUILD, Phase.VERIFY)
    return Candidate(
        name,
        "relation",
        dict.fromkeys(phases, place),
        lambda: found,
        dirty,
        last_build=lambda: LastBuild(stale=note(leftover) if leftover else None),
    )


def plan_of(*candidates: Candidate, selection: PlanRequest = BUILD_ONLY, count: int = 1) -> Plan:
    instances = [Instance({"day": str(n)}, candidates) for n in range(count)]
    return build_plan("p", "j", instances, selection, count=count)


def verdicts(plan: Plan) -> Mapping[str, Planned]:
    return {step.target: step.status for step in plan.steps()}


def test_naming_a_phase_runs_its_lifecycle_up_to_it() -> None:
    assert phases_until(Phase.VERIFY) == (Phase.VALIDATE, Phase.CREATE, Phase.BUILD, Phase.VERIFY)
    assert phases_until(Phase.VERIFY, is_alone=True) == (Phase.VERIFY,)
    assert phases_until(Phase.DESTROY) == (Phase.DESTROY,)


def test_a_dirty_target_taints_what_reads_it_and_leaves_others_clean() -> None:
    plan = plan_of(
        target("reader", filled=True, requires="/a", provides="/b"),
        target("writer", provides="/a"),
        target("other", filled=True, provides="/c"),
        target("last", filled=True, requires="/b"),
    )

    assert verdicts(plan) == {
        "writer": Planned.WOULD_RUN,
        "reader": Planned.WOULD_RUN,
        "other": Planned.CLEAN,
        "last": Planned.WOULD_RUN,
    }
    assert [step.reasons for step in plan.steps() if step.target == "last"] == [
        (Reason(Code.TAINTED, {"target": "reader"}),)
    ]


def test_force_and_dirty_and_leftovers_run_what_is_clean() -> None:
    clean = target("clean", filled=True)

    assert plan_of(clean).has_work is False
    assert plan_of(clean, selection=PlanRequest((Phase.BUILD,), is_forced=True)).has_work
    assert plan_of(clean, selection=PlanRequest((Phase.BUILD,), dirty=(re.compile("cl.*"),))).has_work
    left = plan_of(target("clean", filled=True, leftover="failed in the run before"))
    assert left.steps()[0].reasons == (note("failed in the run before"),)


def test_a_resumed_run_creates_again_what_does_not_conform_any_more() -> None:
    """It failed for ever: CREATE, which had been done, was left out, and the declaration was mended since."""
    left = frozenset({(0, Phase.BUILD, name) for name in ("changed", "same")})
    request = PlanRequest(phases_until(Phase.BUILD), only=left)

    plan = plan_of(target("changed"), target("same", filled=True), target("done"), selection=request)

    assert [(step.phase, step.target, step.status) for step in plan.steps()] == [
        (Phase.CREATE, "changed", Planned.WOULD_RUN),
        (Phase.BUILD, "changed", Planned.WOULD_RUN),
        (Phase.BUILD, "same", Planned.CLEAN),
    ]


def test_two_targets_of_one_place_are_not_clean_because_of_the_other() -> None:
    """With IF_CHANGED, the second one was never built."""

    def sharing(name: str) -> Candidate:
        found = Observation("file:/log", exists=Answer.YES, filled=Answer.YES)
        return replace(
            target(name, provides="/log"),
            observe=lambda: found,
            dirtiness=compared,
            last_build=lambda: NOTHING,
            is_compared=True,
        )

    twice = plan_of(sharing("a"), sharing("b"), count=2)

    said = [[step.status for phase in i.phases for step in phase.steps] for i in twice.instances]
    assert said == [[Planned.WOULD_RUN] * 2, [Planned.CLEAN] * 2]


def test_a_second_instance_finds_what_the_first_one_will_have_written() -> None:
    plan = plan_of(target("table"), selection=PlanRequest(phases_until(Phase.BUILD)), count=2)

    said = [[step.status for phase in i.phases for step in phase.steps] for i in plan.instances]

    assert said == [[Planned.WOULD_RUN, Planned.WOULD_RUN], [Planned.CLEAN, Planned.CLEAN]]


def test_a_target_filtered_out_still_carries_order_through() -> None:
    targets = [target("t3", after=("t2",)), target("t2", after=("t1",)), target("t1")]
    chosen = PlanRequest((Phase.BUILD,), targets=frozenset({"t1", "t3"}))

    assert [step.target for step in plan_of(*targets, selection=chosen).steps()] == ["t1", "t3"]


def test_executions_choose_phases_cycles_and_targets() -> None:
    """Documented as identifying "all active targets in the current phase"."""
    executions = (
        Execution(phase="CREATE", cycle="never"),
        Execution(phase="BUILD", targets=("a",)),
        Execution(phase="VERIFY", cycle="last"),
    )
    plan = plan_of(
        target("a"), target("ab"), selection=PlanRequest(phases_until(Phase.VERIFY), executions), count=3
    )

    said = [[(p.phase, [s.target for s in p.steps]) for p in instance.phases] for instance in plan.instances]

    first = [(Phase.VALIDATE, []), (Phase.BUILD, ["a"])]
    assert said == [first, first, [*first, (Phase.VERIFY, ["a", "ab"])]]


def test_a_phase_without_targets_says_so() -> None:
    plan = plan_of(target("a"), selection=PlanRequest((Phase.TRUNCATE,)))

    assert plan.instances[0].phases[0].note == "no target takes part in TRUNCATE"


def test_a_held_entity_is_blocked_and_so_is_what_reads_it() -> None:
    hold = Hold(Fault("slice 2 has failed", code="item_failed"), is_locked=False)
    place = Node("entity", provides=frozenset({Resource.file("/silver")}))
    entity = Candidate(
        "entity",
        "entity",
        {Phase.BUILD: place},
        lambda: Observation("entity:e", exists=Answer.YES, filled=Answer.YES, hold=hold),
        lambda phase, found: entity_dirtiness(found),
    )

    plan = plan_of(entity, target("gold", filled=True, requires="/silver"))

    assert verdicts(plan) == {"entity": Planned.BLOCKED, "gold": Planned.BLOCKED}
    entity_json, gold = plan.as_json()["instances"][0]["phases"][0]["targets"]
    assert entity_json["error"]["code"] == "item_failed"
    assert (gold["reasons"], gold["reason_codes"]) == (
        ["entity is blocked"],
        [{"code": "blocked", "params": {"target": "entity"}}],
    )


HELD = Observation(
    "held",
    hold=Hold(Fault("slice 2 has failed", code="item_failed"), is_locked=False),
)


def held(name: str = "held") -> Candidate:
    phases = (Phase.BUILD, Phase.VERIFY)
    place = Node(name, provides=frozenset({Resource.file("/held")}))
    return Candidate(name, "entity", dict.fromkeys(phases, place), lambda: HELD, dirty)


def told(plan: Plan) -> list[tuple[str, str, Planned, str]]:
    return [
        (instance.parameters["day"], f"{step.phase} {step.target}", step.status, str(step.reasons[0]))
        for instance in plan.instances
        for phase in instance.phases
        for step in phase.steps
    ]


def test_what_comes_after_something_blocked_is_not_reached() -> None:
    """The plan says what a run will leave out."""
    selection = PlanRequest((Phase.BUILD, Phase.VERIFY))

    plan = plan_of(held(), target("free"), selection=selection, count=2)

    blocked = "not reached while held is blocked in BUILD"
    assert told(plan) == [
        ("0", "BUILD held", Planned.BLOCKED, "slice 2 has failed"),
        ("0", "BUILD free", Planned.WOULD_RUN, "does not exist"),
        ("0", "VERIFY held", Planned.BLOCKED, blocked),
        ("0", "VERIFY free", Planned.BLOCKED, blocked),
        ("1", "BUILD held", Planned.BLOCKED, blocked),
        ("1", "BUILD free", Planned.CLEAN, "is filled"),
        ("1", "VERIFY held", Planned.BLOCKED, blocked),
        ("1", "VERIFY free", Planned.BLOCKED, blocked),
    ]


def test_a_range_behind_a_held_slice_leaves_nothing_of_it_as_clean() -> None:
    """`--resume` runs what a run left undone: a clean step is none of it."""
    filled = Observation("held", exists=Answer.YES, filled=Answer.YES, waiting=("3",), hold=HELD.hold)
    place = Node("stock", provides=frozenset({Resource.file("/stock")}))
    stock = Candidate(
        "stock", "entity", {Phase.BUILD: place}, lambda: filled, lambda _, found: entity_dirtiness(found)
    )

    plan = plan_of(
        stock, target("gold", filled=True, requires="/stock"), target("free", filled=True), count=2
    )

    unreached = "not reached while stock is blocked in BUILD"
    assert told(plan) == [
        ("0", "BUILD stock", Planned.BLOCKED, "slice 2 has failed"),
        ("0", "BUILD gold", Planned.BLOCKED, "stock is blocked"),
        ("0", "BUILD free", Planned.CLEAN, "is filled"),
        ("1", "BUILD stock", Planned.BLOCKED, unreached),
        ("1", "BUILD gold", Planned.BLOCKED, unreached),
        ("1", "BUILD free", Planned.CLEAN, "is filled"),
    ]


def test_keep_going_leaves_out_only_what_depends_on_something_blocked() -> None:
    selection = PlanRequest((Phase.BUILD, Phase.VERIFY), keep_going=True)

    plan = plan_of(held(), target("free"), target("reader", requires="/held"), selection=selection)

    assert told(plan) == [
        ("0", "BUILD held", Planned.BLOCKED, "slice 2 has failed"),
        ("0", "BUILD free", Planned.WOULD_RUN, "does not exist"),
        ("0", "BUILD reader", Planned.BLOCKED, "held is blocked"),
        ("0", "VERIFY held", Planned.BLOCKED, "its BUILD is blocked"),
        ("0", "VERIFY free", Planned.WOULD_RUN, "VERIFY always runs"),
        ("0", "VERIFY reader", Planned.BLOCKED, "its BUILD is blocked"),
    ]


def test_a_step_that_is_clean_only_by_an_earlier_one_names_it() -> None:
    selection = PlanRequest((Phase.CREATE, Phase.BUILD))
    plan = plan_of(target("table"), target("there", filled=True), selection=selection, count=2)

    relies = {
        (instance.parameters["day"], step.phase, step.target): step.relies_on
        for instance in plan.instances
        for phase in instance.phases
        for step in phase.steps
    }

    assert {key: found for key, found in relies.items() if found is not None} == {
        ("1", Phase.CREATE, "table"): (0, Phase.CREATE, "table"),
        ("1", Phase.BUILD, "table"): (0, Phase.BUILD, "table"),
    }


def test_targets_that_are_not_chosen_are_not_looked_at() -> None:
    def refuse() -> Observation:
        raise AssertionError("looked at")

    hidden = Candidate("hidden", "relation", {Phase.BUILD: Node("hidden")}, refuse, dirty)
    chosen = PlanRequest((Phase.BUILD,), targets=frozenset({"shown"}))

    assert list(verdicts(plan_of(hidden, target("shown"), selection=chosen))) == ["shown"]


def test_a_table_of_partitions_is_made_once_for_all_instances() -> None:
    """CREATE concerns the whole table, whichever partition an instance looks at."""

    def instance(day: int) -> Instance:
        found = Observation(f"/t/{day}", exists=Answer.NO, filled=Answer.NO)
        nodes = {
            Phase.CREATE: Node("t", provides=frozenset({Resource.file("/t")})),
            Phase.BUILD: Node("t", provides=frozenset({Resource.file(f"/t/{day}")})),
        }
        return Instance({"day": str(day)}, (Candidate("t", "relation", nodes, lambda: found, dirty),))

    selection = PlanRequest((Phase.CREATE, Phase.BUILD))
    plan = build_plan("p", "j", map(instance, range(2)), selection, count=2)

    assert told(plan) == [
        ("0", "CREATE t", Planned.WOULD_RUN, "does not exist"),
        ("0", "BUILD t", Planned.WOULD_RUN, "is empty"),
        ("1", "CREATE t", Planned.CLEAN, "exists and conforms"),
        ("1", "BUILD t", Planned.WOULD_RUN, "is empty"),
    ]
    assert [step.relies_on for step in plan.steps()] == [None, None, (0, Phase.CREATE, "t"), None]


def entity(pending: str, others: str, *, overtaken: str = "") -> Candidate:
    """Return an entity's target that takes some slices of the one table and leaves others."""
    found = Observation(
        f"file:/silver {pending}",
        exists=Answer.NO,
        filled=Answer.NO,
        pending=tuple(pending.split()),
        others=tuple(others.split()),
        overtaken=tuple(overtaken.split()),
    )
    node = Node("orders", provides=frozenset({Resource.file("/silver")}))
    return Candidate(
        "orders", "entity", {Phase.BUILD: node}, lambda: found, lambda _, seen: entity_dirtiness(seen)
    )


def reasons_of(*candidates: Candidate) -> list[tuple[str, ...]]:
    instances = [Instance({"day": str(n)}, (each,)) for n, each in enumerate(candidates)]
    plan = build_plan("p", "j", instances, BUILD_ONLY, count=len(instances))
    return [(step.status.value, *map(str, step.reasons)) for step in plan.steps()]


def test_instances_take_their_own_slices_and_the_last_one_tells_what_is_left() -> None:
    """D1: a slice that an earlier instance processes is neither pending, nor left, nor overtaken."""
    assert reasons_of(
        entity("a", "b c d"), entity("b", "a c d", overtaken="a"), entity("b c", "a d", overtaken="a")
    ) == [
        ("WOULD_RUN", "1 slice to process: a"),
        ("WOULD_RUN", "1 slice to process: b"),
        (
            "WOULD_RUN",
            "1 slice to process: c",
            "leaves 1 slice to other runs: d; `lakewright apply` takes it",
        ),
    ]


def test_an_instance_whose_slices_an_earlier_one_processes_is_clean() -> None:
    """D1: `until` of a later instance includes the slices of those before it."""
    plan = build_plan(
        "p",
        "j",
        [Instance({}, (entity("a b", ""),)), Instance({}, (entity("b", "a", overtaken="a"),))],
        BUILD_ONLY,
        count=2,
    )
    first, second = plan.steps()
    assert (second.status, second.reasons) == (Planned.CLEAN, (all_processed(is_part=False),))
    assert second.relies_on == (0, Phase.BUILD, "orders")
    assert first.status is Planned.WOULD_RUN


def test_a_slice_that_is_processed_before_an_older_one_is_said() -> None:
    """D1: what a pattern overtakes is late afterwards."""
    assert reasons_of(entity("b", "a", overtaken="a"), entity("a", "b")) == [
        ("WOULD_RUN", "1 slice to process: b", "a is older, and late afterwards"),
        ("WOULD_RUN", "1 slice to process: a"),
    ]
    assert reasons_of(entity("", "a b c d")) == [
        (
            "CLEAN",
            "every slice that it takes has been processed",
            "leaves 4 slices to other runs: a, b, c, d; `lakewright apply` takes them",
        )
    ]


def day_of_total(day: int, *, is_dirty: bool) -> Instance:
    """Return the instance of a day with a running total, which reads that of the day before."""

    def of(number: int) -> frozenset[Resource]:
        return frozenset({Resource.file("/total", {"day": number})})

    found = Observation(
        f"total {day}",
        exists=Answer.YES,
        filled=Answer.YES,
    )
    changed, same = LastBuild(changed=note("what it reads has changed: in")), LastBuild()
    total = Candidate(
        "total",
        "relation",
        {Phase.BUILD: Node("total", requires=of(day - 1), provides=of(day))},
        lambda: found,
        compared,
        last_build=lambda: changed if is_dirty else same,
        is_compared=True,
    )
    # The same in each instance, and built by the first one.
    once = replace(found, subject="names")
    place = Node("names", provides=frozenset({Resource.file("/names")}))
    names = replace(
        total, name="names", nodes={Phase.BUILD: place}, observe=lambda: once, last_build=lambda: changed
    )
    copied = replace(once, subject="copy")
    reads = Node("copy", requires=place.provides, provides=frozenset({Resource.file("/copy")}))
    copy = replace(
        total, name="copy", nodes={Phase.BUILD: reads}, observe=lambda: copied, last_build=lambda: same
    )
    return Instance({"day": str(day)}, (names, copy, total))


def test_what_an_earlier_instance_changes_makes_a_target_dirty_that_compares_its_inputs() -> None:
    """A day that arrives late carries a running total through all later days in one run."""
    days = [day_of_total(day, is_dirty=day == 2) for day in (1, 2, 3, 4)]
    plan = build_plan("shop", "daily", days, BUILD_ONLY, count=4)
    found = [
        (instance.parameters["day"], step.target, str(step.reasons[0]))
        for instance in plan.instances
        for phase in instance.phases
        for step in phase.steps
        if step.status is Planned.WOULD_RUN
    ]
    assert found == [
        ("1", "names", "what it reads has changed: in"),
        ("1", "copy", "tainted by names"),
        ("2", "total", "what it reads has changed: in"),
        ("3", "total", "tainted by total of an earlier instance"),
        ("4", "total", "tainted by total of an earlier instance"),
    ]


def test_a_table_that_create_replaces_is_built_in_the_same_run() -> None:
    """Its migration leaves it without rows, in all partitions, and whatever its inputs were built from."""
    replaced = TableChange("replace the table with an empty one", "all its rows", empties=True)

    def instance(day: int, asked: list[Observation]) -> Instance:
        found = Observation(f"/t/{day}", Answer.YES, Answer.YES, changes=(replaced,))
        nodes = {
            Phase.CREATE: Node("t", provides=frozenset({Resource.file("/t")})),
            Phase.BUILD: Node("t", provides=frozenset({Resource.file(f"/t/{day}")})),
        }
        return Instance(
            {"day": str(day)},
            (
                Candidate(
                    "t",
                    "relation",
                    nodes,
                    lambda: found,
                    compared,
                    lost=lambda phase, found: asked.append(found) if phase is Phase.CREATE else None,
                ),
            ),
        )

    selection, asked = PlanRequest((Phase.CREATE, Phase.BUILD)), list[Observation]()
    plan = build_plan("p", "j", (instance(day, asked) for day in (1, 2, 1)), selection, count=3)

    assert told(plan) == [
        ("1", "CREATE t", Planned.WOULD_RUN, "replace the table with an empty one"),
        ("1", "BUILD t", Planned.WOULD_RUN, "is empty"),
        ("2", "CREATE t", Planned.CLEAN, "exists and conforms"),
        ("2", "BUILD t", Planned.WOULD_RUN, "is empty"),
        ("1", "CREATE t", Planned.CLEAN, "exists and conforms"),
        (
            "1",
            "BUILD t",
            Planned.CLEAN,
            "neither its definition nor its inputs have changed since the last build",
        ),
    ]
    # If the build before fails, the third instance is not done: its rows are gone.
    assert plan.steps()[-1].relies_on == (0, Phase.BUILD, "t")
    assert [each.loses_rows for each in asked] == [True]


def test_what_waits_for_a_table_that_is_made_in_the_same_phase_is_created() -> None:
    """It was `tainted by base`, which is said of what exists."""

    def waits(phase: Phase, observation: Observation) -> Dirtiness:
        return Dirtiness.no(Reason(Code.MADE_IN_BUILD, {"is_new": True, "inputs": ["/base"]}))

    view = replace(target("view", requires="/base", provides="/view"), dirtiness=waits)
    plan = plan_of(view, target("base", provides="/base"), selection=PlanRequest((Phase.CREATE,)))
    (step,) = (each for each in plan.steps() if each.target == "view")
    assert step.reasons == (Reason(Code.ABSENT), Reason(Code.TAINTED, {"target": "base"}))
    assert done_reasons(step)[0] == Reason(Code.WAS_ABSENT, {"done": "created"})


def test_a_migration_that_create_refuses_is_said() -> None:
    refusal = Fault("relation 'a': it cannot be changed", remedy="Declare it as it is.")
    found = Observation(
        "file:a",
        exists=Answer.YES,
        filled=Answer.YES,
        changes=(TableChange("partition by day"),),
        refusal=refusal,
    )
    refused = replace(target("a"), observe=lambda: found)
    plan = plan_of(refused, selection=PlanRequest(phases=(Phase.CREATE, Phase.BUILD)), count=2)
    first, build, *others = plan.steps()
    assert first.status is Planned.WOULD_RUN
    assert first.warning == replace(refusal, message="CREATE will fail: relation 'a': it cannot be changed")
    assert [step.warning for step in (build, *others)] == [None, None, None]


def test_a_view_that_a_step_creates_over_a_table_that_another_step_makes_is_told_once() -> None:
    place, seen = Resource.file("/t"), []
    create = PlanRequest((Phase.CREATE,))

    def lacks(phase: Phase, is_created: Callable[[Resource], bool]) -> Fault:
        seen.append((phase, is_created(place), is_created(Resource.file("/other"))))
        return Fault("CREATE will fail")

    table = target("table", provides="/t")
    view = replace(target("view", requires="/t"), lacks=lacks)
    plan = plan_of(table, view, selection=create, count=2)

    assert seen[0] == (Phase.CREATE, True, False)
    told = [step.target for step in plan.steps() if step.warning is not None]
    assert told == ["view"]


def test_a_build_whose_rows_an_earlier_attempt_has_added_adds_none() -> None:
    warning = Fault("adds its rows once more")
    adding = replace(
        target("log", filled=True, leftover="was cut off"), added=lambda: Added(warning, is_meant=False)
    )
    (step,) = plan_of(adding).steps()
    assert (step.status, step.warning) == (Planned.WOULD_RUN, warning)
    again = replace(adding, landed=lambda: Reason(Code.ADDED_ALREADY))
    (step,) = plan_of(again).steps()
    assert (step.warning, step.reasons) == (None, (Reason(Code.ADDED_ALREADY),))


def test_rows_that_a_step_of_the_plan_empties_are_added_again() -> None:
    adding = replace(
        target("log", filled=True, provides="/log"),
        landed=lambda: Reason(Code.ADDED_ALREADY),
        dirtiness=lambda *_: Dirtiness.yes(Reason(Code.ADDS_ROWS, {"mode": "APPEND"})),
    )
    nodes = {**adding.nodes, Phase.TRUNCATE: adding.nodes[Phase.BUILD]}
    found = replace(adding.observation, changes=(TableChange("replace it", empties=True),))
    emptied = replace(adding, nodes=nodes, observe=lambda: found)
    plan = plan_of(emptied, selection=PlanRequest((Phase.CREATE, Phase.BUILD)))
    built = (step for step in plan.steps() if step.phase is Phase.BUILD)
    assert [step.reasons[0].code for step in built] == [Code.ADDS_ROWS]


def test_rows_may_be_there_if_the_manifest_lacks_what_tables_hold() -> None:
    """With yesterday's copy of the manifest, a job added the rows of today once more, without a word."""
    adding = replace(target("log", filled=True, leftover="was FAILED"), append=Append(True))
    orders = entity("", "")
    found = replace(orders.observation, recovered=("2024-05-01",))
    assert plan_of(orders, adding).steps()
    for known, code in ((orders, None), (replace(orders, observe=lambda: found), MAY_BE_ADDED)):
        (step,) = (each for each in plan_of(known, adding).steps() if each.target == "log")
        assert (step.warning and step.warning.code) == code
    absent = replace(target("log", leftover="was FAILED"), append=Append(True))
    empty = replace(adding, observe=lambda: replace(adding.observation, filled=Answer.NO))
    for each in (absent, empty):
        steps = plan_of(replace(orders, observe=lambda: found), each).steps()
        assert [step.warning for step in steps if step.target == "log"] == [None]
