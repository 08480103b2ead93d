"""Which steps may run at once: `lifecycles-and-phases.md`, "Jobs & Lifecycles"."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from lakewright.plan.dependencies import PhaseEnd, step_dependencies
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.resource import Resource
from lakewright.plan.status import Planned
from lakewright.plan.step import InstancePlan, PhasePlan, Plan, Step, StepKey
from lakewright.spec.models.job import Execution
from lakewright.spec.reason import Reason

Node = StepKey | PhaseEnd


def step(
    target: str,
    phase: Phase = Phase.BUILD,
    *,
    reads: str = "",
    writes: str = "",
    status: Planned = Planned.WOULD_RUN,
    relies_on: StepKey | None = None,
) -> Step:
    return Step(
        phase,
        target,
        "relation",
        status,
        (Reason(Code.EMPTY),),
        requires=frozenset({Resource.file(reads)} if reads else ()),
        provides=frozenset({Resource.file(writes)} if writes else ()),
        relies_on=relies_on,
    )


def plan_of(*instances: list[PhasePlan]) -> Plan:
    made = tuple(InstancePlan({"day": str(n)}, tuple(phases)) for n, phases in enumerate(instances))
    return Plan("p", "j", Phase.VERIFY, made)


def all_before(before: Mapping[Node, set[Node]], node: Node) -> set[Node]:
    seen: set[Node] = set()
    waiting = [*before[node]]
    while waiting:
        if (current := waiting.pop()) not in seen:
            seen.add(current)
            waiting.extend(before[current])
    return seen


def is_before(plan: Plan, early: StepKey, late: StepKey, *executions: Execution) -> bool:
    return early in all_before(step_dependencies(plan, executions), late)


def test_a_phase_begins_when_the_one_before_has_ended() -> None:
    plan = plan_of(
        [
            PhasePlan(Phase.CREATE, (step("a", Phase.CREATE, writes="/a"),)),
            PhasePlan(Phase.BUILD, (step("b", writes="/b"),)),
        ]
    )

    assert is_before(plan, (0, Phase.CREATE, "a"), (0, Phase.BUILD, "b"))


def test_links_order_within_a_phase_and_unrelated_targets_are_free() -> None:
    phase = PhasePlan(
        Phase.BUILD,
        (step("a", writes="/a"), step("b", writes="/b"), step("c", writes="/c")),
        predecessors={"b": frozenset({"a"})},
    )

    assert is_before(plan_of([phase]), (0, Phase.BUILD, "a"), (0, Phase.BUILD, "b"))
    assert not is_before(plan_of([phase]), (0, Phase.BUILD, "a"), (0, Phase.BUILD, "c"))


def test_two_writers_of_one_place_follow_each_other_in_one_instance_and_over_several() -> None:
    phase = PhasePlan(Phase.BUILD, (step("a", writes="/a"), step("b", writes="/a/part")))
    plan = plan_of([phase], [phase])

    assert is_before(plan, (0, Phase.BUILD, "a"), (0, Phase.BUILD, "b"))
    assert is_before(plan, (0, Phase.BUILD, "b"), (1, Phase.BUILD, "a"))


def test_a_reader_waits_for_the_writer_of_an_earlier_instance_and_a_writer_for_the_reader() -> None:
    first = PhasePlan(Phase.BUILD, (step("w", writes="/t"), step("r", reads="/t", writes="/x")))
    second = PhasePlan(Phase.BUILD, (step("w", writes="/t"), step("r", reads="/t", writes="/y")))
    plan = plan_of([first], [second])

    assert is_before(plan, (0, Phase.BUILD, "w"), (1, Phase.BUILD, "r"))
    assert is_before(plan, (0, Phase.BUILD, "r"), (1, Phase.BUILD, "w"))


def test_two_readers_are_free() -> None:
    phases = [[PhasePlan(Phase.BUILD, (step("r", reads="/t", writes=f"/{n}"),))] for n in range(2)]

    assert not is_before(plan_of(*phases), (0, Phase.BUILD, "r"), (1, Phase.BUILD, "r"))


def test_instances_that_share_nothing_pass_each_other() -> None:
    instances = [
        [
            PhasePlan(Phase.BUILD, (step("a", writes=f"/a/{n}"),)),
            PhasePlan(Phase.VERIFY, (step("a", Phase.VERIFY, reads=f"/a/{n}"),)),
        ]
        for n in range(2)
    ]

    before = all_before(step_dependencies(plan_of(*instances)), (1, Phase.VERIFY, "a"))

    assert not any(key[0] == 0 for key in before if not isinstance(key, PhaseEnd))


def test_a_target_that_does_not_tell_what_it_writes_runs_once_at_a_time() -> None:
    phase = PhasePlan(Phase.BUILD, (step("a"), step("b")))
    plan = plan_of([phase], [phase])

    assert is_before(plan, (0, Phase.BUILD, "a"), (1, Phase.BUILD, "a"))
    assert not is_before(plan, (0, Phase.BUILD, "a"), (1, Phase.BUILD, "b"))


def test_what_relies_on_an_earlier_step_waits_for_it() -> None:
    early = (0, Phase.CREATE, "a")
    clean = step("a", Phase.CREATE, status=Planned.CLEAN, relies_on=early)
    plan = plan_of(
        [PhasePlan(Phase.CREATE, (step("a", Phase.CREATE, writes="/a"),))],
        [PhasePlan(Phase.CREATE, (clean,))],
    )

    assert is_before(plan, early, (1, Phase.CREATE, "a"))


def test_phases_of_the_first_and_the_last_instance_are_barriers() -> None:
    instances = [
        [
            PhasePlan(Phase.CREATE, (step("a", Phase.CREATE, writes="/create"),) if n == 0 else ()),
            PhasePlan(Phase.BUILD, (step("a", writes=f"/{n}"),)),
            PhasePlan(Phase.VERIFY, (step("a", Phase.VERIFY),) if n == 2 else ()),
        ]
        for n in range(3)
    ]
    plan = plan_of(*instances)
    create, builds = (0, Phase.CREATE, "a"), [(n, Phase.BUILD, "a") for n in range(3)]
    only = [Execution(phase="CREATE", cycle="first"), Execution(phase="VERIFY", cycle="last")]

    assert not is_before(plan, create, builds[1])
    assert is_before(plan, create, builds[1], *only)
    assert all(is_before(plan, build, (2, Phase.VERIFY, "a"), *only) for build in builds)
    assert not is_before(plan, builds[0], builds[1], *only)


PLACES = st.sampled_from(["", "/a", "/b", "/a/b", "/c", "/a/*"])
STEPS = st.tuples(PLACES, PLACES, st.sampled_from(list(Planned)))


@given(
    st.lists(st.lists(st.lists(STEPS, max_size=3), min_size=2, max_size=2), min_size=1, max_size=4),
    st.sampled_from(["always", "first", "last"]),
)
def test_whatever_touches_what_is_written_is_ordered_as_in_the_plan(
    written: list[list[list[tuple[str, str, Planned]]]], cycle: str
) -> None:
    instances = [
        [
            PhasePlan(
                phase,
                tuple(
                    step(f"t{n}", phase, reads=reads, writes=writes, status=status)
                    for n, (reads, writes, status) in enumerate(steps)
                ),
            )
            for phase, steps in zip((Phase.CREATE, Phase.BUILD), phases, strict=True)
        ]
        for phases in written
    ]
    plan = plan_of(*instances)
    before = step_dependencies(plan, [Execution.model_validate({"phase": "create", "cycle": cycle})])
    steps = [
        ((index, phase.phase, each.target), each)
        for index, instance in enumerate(plan.instances)
        for phase in instance.phases
        for each in phase.steps
    ]
    position = {key: number for number, (key, _) in enumerate(steps)}
    closure = {key: all_before(before, key) for key, _ in steps}

    for key, found in closure.items():
        assert all(position[each] < position[key] for each in found if not isinstance(each, PhaseEnd))
    for (early, one), (late, other) in combinations(steps, 2):
        if one.status is other.status is Planned.WOULD_RUN and clash(one, other):
            assert early in closure[late]


def clash(one: Step, other: Step) -> bool:
    pairs = [
        *((a, b) for a in one.provides for b in other.provides | other.requires),
        *((a, b) for a in one.requires for b in other.provides),
    ]
    return any(a.intersects(b) for a, b in pairs)
