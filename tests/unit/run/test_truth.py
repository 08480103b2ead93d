"""A plan tells the truth, and running side by side comes to what running one by one does; random projects."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.run.bench import ALL_PHASES, Bench, ends, would_run

from lakewright.plan.phase import Phase
from lakewright.plan.status import Planned, Status

NAMES = ("a", "b", "c", "d", "e")
POLICIES = ("ALWAYS", "IF_EMPTY", "IF_TAINTED", "IF_CHANGED", "SMART", "COMPAT")
RANGE = ("day:start=2022-01-01", "day:end=2022-01-03")
DAYS = ("2022-01-01", "2022-01-02", "2022-01-03")

Project = dict[str, Any]


@st.composite
def projects(draw: st.DrawFn) -> Project:
    """Targets that read what those before them write, in any order, with any policy and phases."""
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    targets: dict[str, dict[str, Any]] = {}
    paths: dict[str, str] = {}
    for name in names:
        # Some write the same place as another, some a place of the day.
        place = draw(st.sampled_from([f"/{name}", f"/{name}", "/shared"]))
        paths[name] = draw(st.sampled_from([place, f"{place}/$day"]))
        before = sorted(paths.keys() - {name})
        sources = draw(st.lists(st.sampled_from(before), max_size=2, unique=True)) if before else []
        phases = draw(st.lists(st.sampled_from(ALL_PHASES), min_size=1, unique=True))
        targets[name] = {
            "reads": [paths[source] for source in sources if not paths[source].startswith("/shared")],
            "writes": paths[name],
            "table": place if draw(st.booleans()) else "",
            "after": draw(st.lists(st.sampled_from(before), max_size=1)) if before else [],
            "phases": phases,
            "buildPolicy": draw(st.sampled_from(POLICIES)),
        }
    entries = st.fixed_dictionaries(
        {
            "phase": st.sampled_from(ALL_PHASES),
            "cycle": st.sampled_from(["always", "first", "last", "never"]),
            "targets": st.sampled_from([".*", "a", "[abc]"]),
        }
    )
    order = draw(st.permutations(names))
    places = sorted({path.replace("$day", day) for path in paths.values() for day in DAYS})
    return {
        "targets": {name: targets[name] for name in order},
        "executions": draw(st.lists(entries, max_size=3)),
        "versions": draw(st.dictionaries(st.sampled_from(places), st.integers(0, 2))),
        "broken": draw(st.sets(st.sampled_from(names), max_size=2)),
        "held": draw(st.sets(st.sampled_from(names), max_size=1)),
    }


REQUESTS = st.fixed_dictionaries(
    {
        "force": st.booleans(),
        "keep_going": st.booleans(),
        "dirty": st.sampled_from([(), ("a",), ("[abc]",)]),
        "targets": st.sampled_from([(), ("[a-d]",)]),
    }
)
PHASES = st.sampled_from(list(Phase))
unhurried = settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def with_bench(project: Project, check: Callable[[Bench], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), project["targets"], {"executions": project["executions"]})
        bench.world.versions = dict(project["versions"])
        bench.world.held = set(project["held"])
        check(bench)


def snapshot(bench: Bench) -> Any:
    kinds = ("run", "run_key", "run_target", "taint", "built", "lease")
    documents = [(d.kind, d.key, d.value, d.version) for kind in kinds for d in bench.store.documents(kind)]
    return deepcopy((bench.world.versions, bench.world.built, documents))


@unhurried
@given(projects(), REQUESTS, PHASES)
def test_what_a_plan_says_would_run_is_what_runs_and_planning_changes_nothing(
    project: Project, options: dict[str, Any], phase: Phase
) -> None:
    def check(bench: Bench) -> None:
        before = snapshot(bench)

        plan = bench.plan(phase, *RANGE, **options)

        assert snapshot(bench) == before
        assert bench.world.performed == []
        assert bench.plan(phase, *RANGE, **options) == plan
        result = bench.run(phase, *RANGE, **options)
        assert bench.world.performed == would_run(plan)
        clean = [step for step in plan.steps() if step.status is Planned.CLEAN]
        assert sum(target.status is Status.SKIPPED for target in result.targets()) >= len(clean)
        assert all(target.reasons for target in result.targets())

    with_bench(project, check)


@unhurried
@given(projects(), REQUESTS, PHASES)
def test_with_failures_nothing_runs_that_was_not_planned_and_all_else_says_why(
    project: Project, options: dict[str, Any], phase: Phase
) -> None:
    def check(bench: Bench) -> None:
        bench.world.broken = set(project["broken"])
        plan = bench.plan(phase, *RANGE, **options)

        result = bench.run(phase, *RANGE, **options)

        planned = would_run(plan)
        assert [done for done in planned if done in set(bench.world.performed)] == bench.world.performed
        for instance in result.instances:
            for target in (target for part in instance.phases for target in part.targets):
                key = (instance.parameters["day"], target.phase, target.name)
                if key in set(planned) - set(bench.world.performed):
                    assert target.is_undone
                    assert target.reasons
        if not bench.world.broken:
            assert bench.world.performed == planned

    with_bench(project, check)


@unhurried
@given(projects(), REQUESTS, PHASES, st.booleans())
def test_side_by_side_ends_as_one_by_one_and_nothing_meets_what_it_shares(
    project: Project, options: dict[str, Any], phase: Phase, is_broken: bool
) -> None:
    options = {**options, "keep_going": options["keep_going"] or is_broken}
    found: list[Any] = []

    def check(bench: Bench) -> None:
        bench.world.broken = set(project["broken"]) if is_broken else set()
        jobs = 4 if found else 1
        bench.world.pause = 0.002 if jobs > 1 else 0
        result = bench.run(phase, *RANGE, jobs=jobs, **options)
        assert bench.world.clashes == []
        entries = [
            {**entry, "seconds": 0, "reasons": sorted(entry["reasons"])}
            for entry in bench.journal.targets("run-1")
        ]
        found.append((ends(result), bench.world.versions, sorted(bench.world.performed), entries))

    with_bench(project, check)
    with_bench(project, check)

    assert found[0] == found[1]
