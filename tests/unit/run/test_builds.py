"""What is recorded of builds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.unit.run.bench import Bench

from lakewright.lake.commit import Commit
from lakewright.lake.history import TableHistory, mark_of
from lakewright.manifest.journal import BUILD, TAINT, Journal
from lakewright.manifest.store import Put, Write
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.run.builds import BuildState, RecordedBuild, logged_builds, read_builds
from lakewright.stores.memory import MemoryStore
from lakewright.usecases.due.build_marks import last_builds


def builds(bench: Bench) -> dict[tuple[str, str], RecordedBuild]:
    return {(each.target, each.parameters["day"]): each for each in read_builds(bench.journal, "fake")}


def test_what_a_run_is_to_build_is_wanted_from_its_start(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": {"writes": "/a/$day"}, "b": {"reads": ["/a"], "writes": "/b/$day"}})
    bench.world.broken.add("a")
    bench.run(Phase.BUILD)
    assert {name: each.state for name, each in builds(bench).items()} == {
        ("a", "2022-01-01"): BuildState.WANTED,
        ("b", "2022-01-01"): BuildState.WANTED,
    }
    assert builds(bench)["b", "2022-01-01"].writes == (Resource.file("/b/2022-01-01"),)


def test_what_it_read_is_marked_before_it_reads(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("1")
    bench = Bench(tmp_path, {"a": {"reads": [str(source)], "writes": "/a"}})
    before = mark_of(bench.lake, Resource.file(str(source)))

    def act(*_: object) -> None:
        source.write_text("other")

    bench.world.act = act
    bench.run(Phase.BUILD)
    (build,) = builds(bench).values()
    assert build.inputs == {Resource.file(str(source)): before}
    assert mark_of(bench.lake, Resource.file(str(source))) != before


def test_what_a_person_removes_is_withdrawn_with_all_that_was_in_it(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path, {"a": {"writes": "/a/$day", "table": "/a", "phases": ["build", "truncate", "destroy"]}}
    )
    bench.run(Phase.BUILD, "day=2022-01-01,2022-01-02")
    bench.run(Phase.TRUNCATE, "day=2022-01-02", is_alone=True)
    states = {day: each.state for (_, day), each in builds(bench).items()}
    assert states == {"2022-01-01": BuildState.DONE, "2022-01-02": BuildState.WITHDRAWN}
    bench.run(Phase.DESTROY, is_alone=True)
    assert {each.state for each in builds(bench).values()} == {BuildState.WITHDRAWN}


def test_what_an_earlier_version_marked_as_to_be_built_again_counts_as_begun() -> None:
    journal = Journal(MemoryStore())
    place = {"project": "lake", "target": "t", "phase": "BUILD", "parameters": {"day": "1"}}
    other = {**place, "phase": "CREATE"}
    taints = (
        Put(TAINT, "lake/1", {"place": place, "reason": "failed"}),
        Put(TAINT, "lake/2", {"place": other}),
    )
    journal.store.write(Write(puts=taints))
    (found,) = read_builds(journal, "lake")
    assert (found.target, found.parameters, found.state) == ("t", {"day": "1"}, BuildState.BEGUN)
    done = RecordedBuild("lake", "j", "t", {"day": "1"}, "d", BuildState.DONE)
    journal.store.write(Write(puts=(done.put,)))
    assert list(read_builds(journal, "lake")) == [done]
    assert [each.kind for each in journal.store.documents(BUILD)] == [BUILD]


def test_a_log_tells_builds_of_its_project_that_this_version_understands() -> None:
    done = RecordedBuild("lake", "j", "t", {"day": "1"}, "d", BuildState.BEGUN, (Resource.file("/t"),))
    others = replace(done, project="other")
    contents = [{"build": done.value}, {"build": others.value}, {"build": {"project": "lake"}}, {}]
    log = tuple(
        Commit(number, None, "WRITE", {"mode": "Append"}, {"by": "lakewright", **content})
        for number, content in enumerate(contents)
    )
    (found,) = logged_builds(TableHistory("id", 3, log), "lake")
    assert (found.state, found.output) == (BuildState.DONE, {Resource.file("/t"): "id@0"})


def test_builds_that_replace_the_rows_of_others_hide_these_and_builds_that_update_rows_do_not() -> None:
    """A correction of the first day would not be merged again."""
    place = (Resource.file("/t"),)
    made = RecordedBuild("lake", "j", "t", {"day": "1"}, "d", BuildState.DONE, place, order="1")
    for updates_rows, days in ((False, ["2"]), (True, ["1", "2"])):
        first = replace(made, updates_rows=updates_rows)
        builds = [first, replace(first, parameters={"day": "2"}, order="2")]
        assert [each.parameters["day"] for each in last_builds(builds)] == days
        assert [RecordedBuild.from_json(each.value) for each in builds] == builds
