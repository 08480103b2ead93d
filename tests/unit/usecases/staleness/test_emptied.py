"""Targets that keep rows of before are emptied before they are built again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.commands import InProcess
from tests.unit.usecases.staleness.test_downstream import built
from tests.unit.usecases.staleness.test_downstream import lake as new_lake

from lakewright.app import App
from lakewright.manifest.journal import ABORTED, KeptRows, Origin, Run, TargetPhase
from lakewright.manifest.store import Write
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.run.kept_rows import after_build
from lakewright.run.missing_inputs import MISSING_INPUT
from lakewright.run.request import JobRequest
from lakewright.run.step_warnings import with_warning
from lakewright.usecases.answered_warnings import unanswered
from lakewright.usecases.failed_runs.undone_runs import builds_left
from lakewright.usecases.history import Warned
from lakewright.usecases.plan_job import plan_job
from lakewright.usecases.staleness.downstream import downstream_taints, tainted_words
from lakewright.usecases.staleness.emptied import forget_emptied
from lakewright.usecases.staleness.tainted_targets import tainted_targets
from lakewright.usecases.status import project_status

ADDS = KeptRows("went back, and a build adds its rows")
KEEPS = KeptRows("went back, and a build keeps rows")


def lake(path: Path) -> App:
    """Return a lake in which the tables that keep rows are there."""
    for name in ("added", "merged"):
        (path / "gold" / name).mkdir(parents=True)
    return new_lake(path)


def changed_lake(path: Path, *changes: tuple[str, str]) -> App:
    """Return a lake of a model in which the first occurrence of each text is replaced by another one."""
    lake(path).close()
    model = path / "model/model.yml"
    text = model.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    model.write_text(text)
    return App.open(path)


def emptied_by(app: App, *days: str, targets: Sequence[str], by: Phase = Phase.TRUNCATE) -> Any:
    """Return a run of TRUNCATE or DESTROY, as far as its taints follow from it."""
    phase = SimpleNamespace(
        phase=by,
        targets=[SimpleNamespace(name=name, is_undone=False) for name in targets],
    )
    instances = [SimpleNamespace(parameters={"day": day}, phases=[phase]) for day in days]
    return SimpleNamespace(job="daily", run_id="emptying", phase=by, instances=instances)


def test_what_keeps_rows_of_an_undone_slice_is_emptied_first_with_all_that_was_built_there(
    tmp_path: Path,
) -> None:
    """Building it again, as `status` said, left the rows of the slice, or added the others once more."""
    app = lake(tmp_path)
    orders = app.project.entity("orders")
    for day in ("2022-01-01", "2022-01-02"):
        built(app, "daily", ("orders", "names", "added", "merged"), hours_ago=2, day=day)
    puts = downstream_taints(app, orders, "went back")
    said = "merged, added must be emptied first: `lakewright status` says how"
    assert said in str(tainted_words(puts))
    app.store.write(Write(puts=puts))
    # Its rows go, too.
    built(app, "daily", ("orders", "names", "added", "merged"), hours_ago=1, day="2022-01-03")

    days = "day=2022-01-01,2022-01-02,2022-01-03"
    commands = [
        f"lakewright job daily truncate -t added -t merged {days} --yes",
        f"lakewright job daily build --dirty=added --dirty=merged {days}",
    ]
    found = {each.target: each for each in tainted_targets(app)}
    assert found.keys() == {"added", "merged", "names"}
    assert all((list(each.commands), each.is_emptied) == (commands, True) for each in found.values())
    words = "a build adds its rows to those that are there (mode APPEND)"
    assert found["added"].reason == f"went back, and {words}"
    assert found["merged"].reason == "went back, and a merge takes out no rows that its mapping lacks"
    assert f"do: `{commands[0]}`, then `{commands[1]}`" in InProcess(tmp_path).run("status").out

    before = tuple(app.journal.taints("shop"))
    forget_emptied(
        app, before, emptied_by(app, "2022-01-01", "2022-01-02", "2022-01-03", targets=("added", "merged"))
    )
    left = {(each.target, each.reason): each for each in tainted_targets(app)}
    assert left["added", "went back"].commands == ("lakewright job daily build day=2022-01-01,2022-01-02",)
    gone = "its rows were removed by TRUNCATE in run emptying"
    assert left["merged", gone].commands == ("lakewright job daily build day=2022-01-03",)
    app.close()


def test_a_run_that_builds_what_keeps_rows_ends_with_errors_until_it_is_emptied(tmp_path: Path) -> None:
    app = lake(tmp_path)
    rows = tmp_path / "gold/added/part-0.json"
    rows.write_text("{}")
    place = TargetPhase("shop", "added", "BUILD", {"day": "2022-01-01"})
    app.store.write(Write(puts=(place.tainted("went back", kept=ADDS),)))
    request = JobRequest("daily", Phase.BUILD, ("day=2022-01-01",), targets=("added",))
    (step,) = (each for each in plan_job(app, request).steps() if each.phase is Phase.BUILD)
    assert step.warning is not None
    assert (step.warning.message, step.warning.code) == (
        "target 'added': went back, and a build adds its rows",
        "kept_rows",
    )
    typed = (
        "`lakewright job daily truncate -t added day=2022-01-01 --yes`, then `lakewright job daily build -t"
    )
    assert f"{typed} added day=2022-01-01`" in str(step.warning.remedy)
    done = with_warning(Outcome(metrics={"target_records": 1}), step)
    assert (done.status, done.error) == (Status.SUCCESS_WITH_ERRORS, step.warning)
    assert with_warning(Outcome(Status.FAILED), step) == Outcome(Status.FAILED)
    # `status` names the commands for all that the run before wrote; its text said to look at `status`.
    built(app, "daily", ("added",), hours_ago=1, day="2022-01-02")
    told = {"error": None if done.error is None else done.error.as_json(), "phase": "BUILD", "name": "added"}
    warned = Warned(next(iter(app.journal.runs(1))), {**told, "instance": {"day": "2022-01-01"}})
    assert list(unanswered(app, [warned], ())) == [], "it is to be built again, which says the same"
    after = after_build(place, step)
    assert after.value is not None
    assert after.value["kept"] == "went back, and a build adds its rows"
    app.store.write(Write(puts=(place.untainted(),)))
    (found,) = unanswered(app, [warned], ())
    app.store.write(Write(puts=(after,)))
    days = "day=2022-01-01,2022-01-02"
    assert found.entry["error"]["remedy"] == (
        f"Type `lakewright job daily truncate -t added {days} --yes`, then `lakewright job daily build "
        f"--dirty=added -t +added {days}`."
    )
    # A run that fails to build it leaves it as it was.
    (kept,) = (put.value for put in (place.tainted("failed", "r1", kept=step.kept),))
    assert kept is not None
    assert kept["kept"] == "went back, and a build adds its rows"

    # Where no rows are, none of before are left.
    rows.unlink()
    (step,) = (each for each in plan_job(app, request).steps() if each.phase is Phase.BUILD)
    assert step.warning is None or step.warning.code == MISSING_INPUT
    rows.write_text("{}")
    (taint,) = app.journal.taints("shop")
    app.store.write(Write(puts=(taint.emptied,)))
    (step,) = (each for each in plan_job(app, request).steps() if each.phase is Phase.BUILD)
    assert step.warning is not None
    assert (step.warning.code, with_warning(Outcome(), step)) == (MISSING_INPUT, Outcome())
    app.close()


def test_what_a_killed_run_may_have_added_is_emptied_first_also_beside_the_command_to_resume_it(
    tmp_path: Path,
) -> None:
    app = lake(tmp_path)
    built(app, "daily", ("orders", "added"), hours_ago=2, day="2022-01-01")
    app.begin_run()
    now, given = app.store.now(), {"day": "2022-01-02"}
    run = app.journal.start_run(Run("killed", "shop", "daily", "BUILD", given, now, app.holder))
    said = "run killed may have added its rows already, and a build adds its rows"
    place = TargetPhase("shop", "added", "BUILD", given)
    app.store.write(
        Write(puts=(place.tainted("was left undone", "killed", kept=KeptRows(said, Origin.UNSURE)),))
    )
    assert list(project_status(app).tainted) == []  # it runs

    app.journal.abort_run(run)
    status = project_status(app)
    assert [each.run_id for each in status.undone] == ["killed"]
    (found,) = status.tainted
    assert (found.target, found.reason) == ("added", said)
    assert found.commands == (
        "lakewright job daily truncate -t added day=2022-01-01,2022-01-02 --yes",
        "lakewright job daily build --dirty=added -t +added day=2022-01-01,2022-01-02",
    )
    app.close()


def test_an_append_that_was_emptied_has_no_identity_any_more(tmp_path: Path) -> None:
    app = lake(tmp_path)
    place = TargetPhase("shop", "added", "BUILD", {"day": "2022-01-01"})
    app.store.write(Write(puts=(place.tainted("was left undone", "r1", append_id="a"),)))
    forget_emptied(app, tuple(app.journal.taints("shop")), emptied_by(app, "2022-01-03", targets=("added",)))
    (taint,) = (each for each in app.journal.taints("shop") if each.run_id == "r1")
    assert taint.append_id is None
    app.close()


def test_targets_that_add_rows_are_not_built_beside_those_that_are_emptied(tmp_path: Path) -> None:
    app = lake(tmp_path)
    built(app, "daily", ("orders", "names", "added", "merged"), hours_ago=2, day="2022-01-01")
    place = TargetPhase("shop", "merged", "BUILD", {"day": "2022-01-01"})
    app.store.write(Write(puts=(place.tainted("went back", kept=KeptRows("went back")),)))
    (found,) = tainted_targets(app)
    assert found.commands == (
        "lakewright job daily truncate -t merged day=2022-01-01 --yes",
        "lakewright job daily build -t +merged day=2022-01-01",
    )
    app.close()


def test_nothing_is_emptied_where_the_table_was_destroyed(tmp_path: Path) -> None:
    """`status` and `plan` named a `truncate` of a table that did not exist any more."""
    app = lake(tmp_path)
    for name in ("added", "merged"):
        place = TargetPhase("shop", name, "BUILD", {"day": "2022-01-01"})
        app.store.write(Write(puts=(place.tainted("went back", kept=KEEPS),)))
    (tmp_path / "gold/added").rmdir()
    found = {each.target: each for each in tainted_targets(app)}
    assert found["added"].reason == "went back"
    assert found["merged"].commands[0] == "lakewright job daily truncate -t merged day=2022-01-01 --yes"
    (tmp_path / "gold/merged").rmdir()
    (added, merged) = tainted_targets(app)
    assert added.commands == merged.commands == ("lakewright job daily build day=2022-01-01",)
    request = JobRequest("daily", Phase.BUILD, ("day=2022-01-01",), targets=("added",))
    (step,) = (each for each in plan_job(app, request).steps() if each.phase is Phase.BUILD)
    assert (step.warning is None or step.warning.code) == MISSING_INPUT
    app.close()


def test_a_run_that_destroys_a_table_in_one_instance_has_emptied_it_for_all(tmp_path: Path) -> None:
    app = lake(tmp_path)
    (tmp_path / "gold/names/day=2022-01-02").mkdir(parents=True)
    place = TargetPhase("shop", "names", "BUILD", {"day": "2022-01-02"})
    app.store.write(Write(puts=(place.tainted("went back", kept=KEEPS),)))
    before = tuple(app.journal.taints("shop"))
    forget_emptied(app, before, emptied_by(app, "2022-01-01", targets=("names",)))
    assert [each.kept is None for each in app.journal.taints("shop")] == [False]  # the other partition
    forget_emptied(app, before, emptied_by(app, "2022-01-01", targets=("names",), by=Phase.DESTROY))
    assert [each.kept is None for each in app.journal.taints("shop")] == [True]
    app.close()


def test_what_a_killed_run_builds_once_it_is_resumed_is_not_named_twice(tmp_path: Path) -> None:
    """Its own command stood below `--resume`: who typed both had the rows of an append twice."""
    app = lake(tmp_path)
    for day in ("2022-01-01", "2022-01-02"):
        place = TargetPhase("shop", "added", "BUILD", {"day": day})
        app.store.write(Write(puts=(place.tainted("its rows were removed by TRUNCATE", lost_in="r0"),)))
    app.begin_run()
    at = app.store.now()
    run = Run(app.run_id, "shop", "daily", "BUILD", {"day": "2022-01-01"}, at, app.holder, ABORTED)
    app.journal.start_run(run)
    left = project_status(app)
    assert [each.run_id for each in left.undone] == [run.run_id]
    assert [each.commands for each in left.tainted] == [
        ("lakewright job daily build -t added day=2022-01-02",)
    ]
    assert builds_left(app, left.undone) >= {("added", (("day", "2022-01-01"),))}
    app.close()


def test_only_what_was_in_an_emptied_table_is_built_again_and_all_of_it(tmp_path: Path) -> None:
    """A target of the other job, with a table of its own, added its rows again; one of the job was left."""
    app = lake(tmp_path)
    model = tmp_path / "model/model.yml"
    more = """
  beside: {kind: relation, mapping: orders, relation: added, mode: APPEND}
  late: {kind: relation, mapping: orders, relation: added, mode: APPEND}
  elsewhere: {kind: relation, mapping: orders, relation: report, mode: APPEND}
jobs:
  later: {parameters: [{name: date, type: date}], targets: [late, elsewhere]}"""
    text = model.read_text().replace("\njobs:", more).replace("added, merged]", "added, beside, merged]")
    model.write_text(text)
    app.close()
    app = App.open(tmp_path)
    for day in ("2022-01-01", "2022-01-02"):
        built(app, "daily", ("orders", "added", "merged"), hours_ago=3, day=day)
        built(app, "later", ("late", "elsewhere"), hours_ago=2, date=day)
    built(app, "daily", ("beside",), hours_ago=1, day="2022-01-02")
    place = TargetPhase("shop", "added", "BUILD", {"day": "2022-01-01"})
    app.store.write(Write(puts=(place.tainted("went back", kept=ADDS),)))
    (found,) = tainted_targets(app)
    assert found.commands == (
        "lakewright job daily truncate -t added day=2022-01-01,2022-01-02 --yes",
        "lakewright job daily build --dirty=added -t +added day=2022-01-01,2022-01-02",
        "lakewright job daily build -t beside day=2022-01-02",
        "lakewright job later build -t late date=2022-01-01,2022-01-02",
    )
    app.close()


def test_each_target_is_emptied_and_built_in_its_own_instances(tmp_path: Path) -> None:
    """All of them were, in the instances of all: rows were added for days that nobody had built."""
    app = lake(tmp_path)
    model = tmp_path / "model/model.yml"
    more = """
  apart: {kind: relation, mapping: orders, relation: names, partition: {day: $day}, mode: APPEND}
jobs:"""
    text = model.read_text().replace("\njobs:", more, 1).replace("added, merged]", "added, apart, merged]")
    model.write_text(text)
    (tmp_path / "gold/names/day=2022-01-02").mkdir(parents=True)
    app.close()
    app = App.open(tmp_path)
    for day in ("2022-01-01", "2022-01-02"):
        built(app, "daily", ("orders", "added", "apart"), hours_ago=3, day=day)
    built(app, "daily", ("orders", "names"), hours_ago=1, day="2022-01-03")
    kept = [("added", "2022-01-01"), ("apart", "2022-01-02")]
    places = [TargetPhase("shop", name, "BUILD", {"day": day}) for name, day in kept]
    puts = [each.tainted("went back", kept=ADDS) for each in places]
    plain = TargetPhase("shop", "names", "BUILD", {"day": "2022-01-03"}).tainted("went back")
    app.store.write(Write(puts=(*puts, plain)))
    found = {each.target: each for each in tainted_targets(app)}
    assert found["added"].commands == (
        "lakewright job daily truncate -t added day=2022-01-01,2022-01-02 --yes",
        "lakewright job daily truncate -t apart day=2022-01-02 --yes",
        "lakewright job daily build --dirty=added -t added day=2022-01-01,2022-01-02",
        "lakewright job daily build -t apart day=2022-01-02",
        "lakewright job daily build -t names day=2022-01-03",
    )
    app.close()


def test_what_is_emptied_is_built_after_what_it_reads(tmp_path: Path) -> None:
    """By name, a target was built from a table that was still empty, and what it lacked was told nowhere."""
    (tmp_path / "gold/zone/day=2022-01-02").mkdir(parents=True)
    app = changed_lake(
        tmp_path,
        (
            "relations:",
            "relations:\n  zone: {kind: file, format: json, location: gold/zone, "
            "partitions: [{name: day, type: date}]}",
        ),
        ("mappings:", "mappings:\n  zone: {kind: relation, relation: zone}"),
        ("added: {kind: relation, mapping: orders", "added: {kind: relation, mapping: zone"),
        (
            "jobs:",
            "  zone: {kind: relation, mapping: orders, relation: zone, mode: APPEND, "
            "partition: {day: $day}}\njobs:",
        ),
        ("added, merged]", "added, zone, merged]"),
    )
    for day in ("2022-01-01", "2022-01-02"):
        built(app, "daily", ("orders", "zone", "added"), hours_ago=3, day=day)
    kept = [("added", "2022-01-01"), ("zone", "2022-01-02")]
    places = [TargetPhase("shop", name, "BUILD", {"day": day}) for name, day in kept]
    puts = [each.tainted("went back", kept=ADDS) for each in places]
    app.store.write(Write(puts=tuple(puts)))
    found = {each.target: each for each in tainted_targets(app)}
    assert found["added"].commands == (
        "lakewright job daily truncate -t added day=2022-01-01,2022-01-02 --yes",
        "lakewright job daily truncate -t zone day=2022-01-02 --yes",
        "lakewright job daily build -t zone day=2022-01-02",
        "lakewright job daily build --dirty=added -t added day=2022-01-01,2022-01-02",
    )
    app.close()


def test_targets_that_are_emptied_and_built_apart_are_not_built_with_what_they_read(tmp_path: Path) -> None:
    """With what it reads, the second command built the target of the first once more: rows came twice."""
    app = changed_lake(
        tmp_path,
        ("relations:", "relations:\n  middle: {kind: file, format: json, location: gold/middle}"),
        (
            "mappings:",
            "mappings:\n  added: {kind: relation, relation: added}\n"
            "  middle: {kind: relation, relation: middle}",
        ),
        ("merged: {kind: merge, mapping: orders", "merged: {kind: merge, mapping: middle"),
        ("jobs:", "  middle: {kind: relation, mapping: added, relation: middle, mode: APPEND}\njobs:"),
        ("added, merged]", "added, middle, merged]"),
    )
    built(app, "daily", ("orders", "added", "middle", "merged"), hours_ago=3, day="2022-01-01")
    places = {
        name: TargetPhase("shop", name, "BUILD", {"day": "2022-01-01"})
        for name in ("added", "middle", "merged")
    }
    kept = "went back, and a build adds its rows"
    puts = [places[name].tainted("went back", kept=KeptRows(kept)) for name in ("added", "merged")]
    app.store.write(Write(puts=(*puts, places["middle"].tainted("its rows were removed"))))
    found = {each.target: each for each in tainted_targets(app)}
    assert found["added"].commands == (
        "lakewright job daily truncate -t added -t merged day=2022-01-01 --yes",
        "lakewright job daily build -t added day=2022-01-01",
        "lakewright job daily build -t middle day=2022-01-01",
        "lakewright job daily build -t merged day=2022-01-01",
    )
    app.close()


def test_an_emptied_append_is_built_alone_if_it_reads_another_one(tmp_path: Path) -> None:
    """With what it reads, the rows of the other one were added once more, and `status` was calm."""
    (tmp_path / "gold/reader").mkdir(parents=True)
    app = changed_lake(
        tmp_path,
        ("relations:", "relations:\n  reader: {kind: file, format: json, location: gold/reader}"),
        ("mappings:", "mappings:\n  added: {kind: relation, relation: added}"),
        ("jobs:", "  reader: {kind: relation, mapping: added, relation: reader, mode: APPEND}\njobs:"),
        ("added, merged]", "added, reader, merged]"),
    )
    built(app, "daily", ("orders", "added", "reader"), hours_ago=3, day="2022-01-01")
    place = TargetPhase("shop", "reader", "BUILD", {"day": "2022-01-01"})
    app.store.write(
        Write(puts=(place.tainted("is old", kept=KeptRows("is old, and a build adds its rows")),))
    )
    (found,) = tainted_targets(app)
    assert found.commands == (
        "lakewright job daily truncate -t reader day=2022-01-01 --yes",
        "lakewright job daily build -t reader day=2022-01-01",
    )
    app.close()


def test_an_entity_that_was_emptied_beside_a_target_waits_for_its_slices_alone(tmp_path: Path) -> None:
    """It stayed under "Targets to build again" for ever, with all that reads it."""
    app = lake(tmp_path)
    for day in ("2022-01-01", "2022-01-02"):
        built(app, "daily", ("orders", "added", "merged"), hours_ago=3, day=day)
    place = TargetPhase("shop", "added", "BUILD", {"day": "2022-01-02"})
    app.store.write(Write(puts=(place.tainted("went back", kept=ADDS),)))
    before = tuple(app.journal.taints("shop"))
    forget_emptied(app, before, emptied_by(app, "2022-01-02", targets=("orders", "added")))
    assert sorted({each.place.target for each in app.journal.taints("shop")}) == ["added"]
    app.store.write(Write(puts=(TargetPhase("shop", "orders", "BUILD", {"day": "x"}).tainted("is old"),)))
    assert {each.target for each in tainted_targets(app)} == {"added"}
    app.close()
