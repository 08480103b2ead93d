"""Instances of targets that no recorded run tells, found by the partitions that they have left.

After a manifest was lost, or its history pruned, nobody else knows which instances were built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lakewright.errors import LakewrightError
from lakewright.lake.delta_log import LocalLog, read_log, state_of
from lakewright.lake.paths import local_path
from lakewright.manifest.item import Verdict
from lakewright.manifest.readiness import Group, Reading
from lakewright.manifest.record import Record, State
from lakewright.manifest.store import Query
from lakewright.run.leftovers import is_built
from lakewright.run.outputs import WRITES, written_by
from lakewright.slices.application import application_of
from lakewright.slices.discover import item_id, slice_name
from lakewright.slices.other_runs import entity_name, find_other_runs
from lakewright.slices.processed import place_of
from lakewright.spec.expressions.secrets import HIDDEN
from lakewright.spec.expressions.values import render_value
from lakewright.usecases.staleness.declared_nodes import nodes_of_job, offline_lake
from lakewright.usecases.staleness.earlier_builds import RUNS, Built, former_names

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.item import Item
    from lakewright.manifest.store import Damage
    from lakewright.plan.resource import Resource
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.job import Job

__all__ = [
    "left_instances",
    "own_partitions",
    "recovered_at",
    "recovered_since",
    "unrecorded_instances",
    "untold_instances",
]

_PARAMETER = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_MOST_ITEMS = 100
"""Number of processed slices, newest first, among which recovered ones are looked for: two round trips."""
_NULL = "__HIVE_DEFAULT_PARTITION__"


def left_instances(app: App, job: Job, names: frozenset[str]) -> list[tuple[str, Mapping[str, str]]]:
    """Return a job's targets in each instance of which one has left a partition; the last ones come first.

    These are partitions of tables and files on this machine whose columns are the job's parameters.
    """
    if not job.parameters or not names:
        return []
    found = {instance for _, instance in _left(app, job, names)}
    return [(name, dict(each)) for each in sorted(found, reverse=True) for name in sorted(names)]


def own_partitions(app: App, job: Job, names: frozenset[str]) -> list[tuple[str, Mapping[str, str]]]:
    """Return a job's targets in each instance of which they have left a partition themselves."""
    found = set(_left(app, job, names)) if job.parameters and names else ()
    return [(name, dict(each)) for name, each in sorted(found, reverse=True)]


def _left(app: App, job: Job, names: frozenset[str]) -> Iterator[Built]:
    """Yield the instances of targets that have left partitions, without those that only others have built."""
    others: dict[str, set[tuple[str, str]]] | None = None
    lake = offline_lake(app)
    for output in _outputs(app, job, names):
        name = output.target
        for values in output.partitions():
            instance = _instance(job, output.parameters, values)
            if instance is None:
                continue
            others = _writers(app, job, names) if others is None else others
            places = written_by(app.project, lake, job, name, dict(instance)) if others else ()
            writers = [others.get(str(each), set()) if others else set() for each in places]
            if not writers or not all(writers) or any((job.name, name) in each for each in writers):
                yield name, instance


def _writers(app: App, job: Job, names: frozenset[str]) -> dict[str, set[tuple[str, str]]]:
    """Return what runs have written where targets of a job write, each with the jobs and targets that did.

    It is empty if no other target, and no other job, writes there.
    """
    tables = {each.whole for node in nodes_of_job(app, job.name, names) for each in node.provides}
    writers: dict[Resource, set[tuple[str, str]]] = {}
    for each in app.project.jobs.values():
        for node in nodes_of_job(app, each.name, each.targets):
            for table in tables & {place.whole for place in node.provides}:
                writers.setdefault(table, set()).add((each.name, node.name))
    shared = {one for of_table in writers.values() if len(of_table) > 1 for one in of_table}
    former, found = former_names(app), dict[str, set[tuple[str, str]]]()
    for name in sorted({job_name for job_name, _ in shared}):
        for run in islice(app.journal.runs(project=app.project.name, job=name), RUNS):
            for entry in former.entries(run):
                if (name, entry["name"]) in shared and is_built(entry):
                    for place in entry.get(WRITES, ()):
                        found.setdefault(place, set()).add((name, entry["name"]))
    return found


def untold_instances(app: App, job: Job, names: frozenset[str]) -> list[tuple[str, Mapping[str, str]]]:
    """Return a job's targets of which no partition can tell what was built, each in an unknown instance.

    The values of its parameters are hidden, as those of secrets are. A target of a job without parameters has
    one instance; it is left out if nothing is where it writes on this machine.
    """
    told = (
        {each.target for each in _outputs(app, job, names)} if job.parameters else _unbuilt(app, job, names)
    )
    unknown = {each.name: HIDDEN for each in job.parameters}
    return [(name, unknown) for name in sorted(names - told)]


def _unbuilt(app: App, job: Job, names: frozenset[str]) -> set[str]:
    return {
        node.name
        for node in nodes_of_job(app, job.name, names)
        if (folders := [local_path(each.name) for each in node.provides if each.category == "file"])
        and not any(folder is None or folder.exists() for folder in folders)
    }


def recovered_at(app: App, entity: Entity) -> datetime | None:
    """Return when the manifest recovered an entity's first slice from the table's log; None if it did not.

    Runs from before are not in the history.
    """
    application = application_of(app.project.name, entity)
    prefix = f"{item_id(entity.places(app.project.lake).bronze)}/"
    query = Query(application=application, verdicts=frozenset({Verdict.PROCESSED}), prefix=prefix)
    first = min(app.store.select(query), key=place_of, default=None)
    records = () if first is None else app.store.records(first.item_id)
    ended = ((begun, done) for begun, done in pairwise(records) if done.state is State.PROCESSED)
    begun, done = next(ended, (None, None))
    return done.timestamp if done is not None and _is_recovered(begun, done) else None


def recovered_since(app: App, entity: Entity, since: datetime) -> datetime | None:
    """Return when the manifest last recovered one of an entity's newest slices from the table's log.

    None if it recovered none after `since`. The manifest was then put back to an older copy, so that the
    history lacks the runs between that copy and the recovery.
    """
    found = [at for _, at in _recovered(app, entity) if at > since]
    return max(found, default=None)


def unrecorded_instances(app: App, job: Job) -> list[tuple[str, Mapping[str, str]]]:
    """Return a job's targets in each instance that may have been built although the history lacks the run.

    These are the instances that take slices which the manifest has recovered from tables' logs, and those
    that have left a partition. None are returned if nothing was recovered.
    """
    declared = {name: each for name, each in app.project.targets.items() if name in job.targets}
    names = frozenset(name for name, each in declared.items() if each.kind != "entity")
    called = {entity_name(app.project, each.raw) for each in declared.values() if each.kind == "entity"} - {
        None
    }
    if not (names and job.parameters):
        return []
    found: dict[str, list[str]] = {
        str(name): [slice_name(item) for item, _ in _recovered(app, app.project.entity(str(name)))]
        for name in called
    }
    runs = (
        run
        for name, slices in found.items()
        for each in slices
        for run in find_other_runs(app.project, name, [each])
        if run.job == job.name
    )
    instances = sorted({tuple(sorted(run.parameters)) for run in runs})
    told = [(name, dict(each)) for each in instances for name in sorted(names)]
    return [*told, *(left_instances(app, job, names) if any(found.values()) else ())]


def _recovered(app: App, entity: Entity) -> Iterator[tuple[Item, datetime]]:
    """Yield the newest slices of an entity that the manifest has recovered from the table's log, and when."""
    application = application_of(app.project.name, entity)
    standings = frozenset(
        each for each in app.store.standings() if each.verdict(application) is Verdict.PROCESSED
    )
    newest = app.store.queue(Group(standings), Reading(is_newest_first=True, limit=_MOST_ITEMS))
    places = {
        (item.item_id, mark.sequence): item
        for item in newest
        for mark in item.processed
        if mark.application.covers(application)
    }
    before = {place: (place[0], place[1] - 1) for place in places}
    records = app.store.find_records([*before.values(), *places]) if places else {}
    for place, item in places.items():
        done = records.get(place)
        if isinstance(done, Record) and _is_recovered(records.get(before[place]), done):
            yield item, done.timestamp


def _is_recovered(begun: Record | Damage | None, done: Record) -> bool:
    """Return whether a slice was recovered from the log without a run that claimed it.

    Its two records are then of one write. A run that takes over the slice of one that died after its commit
    adopts the commit, too, but the history has both runs.
    """
    is_one_write = isinstance(begun, Record) and begun.timestamp == done.timestamp
    return is_one_write and bool(done.content.get("adopted"))


@dataclass(frozen=True, slots=True)
class _Output:
    """A target with partitions whose columns tell the parameters of its instances.

    Attributes:
        parameters: The parameter of each of these columns.
        others: The values of its other partition columns, as they are declared.
        folder: The folder of this machine that has the partitions.
    """

    target: str
    parameters: Mapping[str, str]
    others: Mapping[str, str]
    folder: Path

    def partitions(self) -> Iterator[Mapping[str, str]]:
        """Yield the values of the partitions that the target may have left, by column.

        Several targets may share a table, each with partitions of its own.
        """
        for values in _partitions(self.folder, (*self.parameters, *self.others)):
            if all(values.get(column, text) == text for column, text in self.others.items()):
                yield values


def _outputs(app: App, job: Job, names: frozenset[str]) -> Iterator[_Output]:
    """Yield targets with the parameter of each partition column, and the folders that they write."""
    for node in nodes_of_job(app, job.name, names):
        declared = app.project.targets[node.name].raw.get("partition")
        entries: dict[str, str] = {}
        if isinstance(declared, Mapping):
            entries = {str(name): render_value(text).strip() for name, text in declared.items()}
        columns = _columns(entries)
        if {each.name for each in job.parameters} != set(columns.values()):
            continue
        # What is an expression is not compared.
        others = {name: text for name, text in entries.items() if name not in columns and "$" not in text}
        for place in node.provides:
            folder = local_path(place.name) if place.category == "file" else None
            if folder is not None:
                yield _Output(node.name, columns, others, _whole(folder, entries))


def _whole(folder: Path, columns: Mapping[str, str]) -> Path:
    """Return the folder that has the partitions; what writes files names that of its own partition."""
    named = {part.partition("=")[0] for part in folder.parts[-len(columns) :] if "=" in part}
    return folder.parents[len(columns) - 1] if columns and named == columns.keys() else folder


def _columns(declared: Mapping[str, str]) -> dict[str, str]:
    found = {column: _PARAMETER.fullmatch(text) for column, text in declared.items()}
    return {column: match[1] or match[2] for column, match in found.items() if match is not None}


def _partitions(folder: Path, columns: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """Yield the values of the partitions that a table or a folder of files has, by column."""
    if (folder / "_delta_log").is_dir():
        try:
            table = read_log(LocalLog(folder)).table
        except LakewrightError:  # who reads the table tells it
            return
        if table is not None:
            state = state_of(table)
            for values in state.partitions or ():
                yield {
                    name: render_value(value)
                    for name, value in zip(state.partition_columns, values, strict=True)
                }
        return
    for path in sorted(folder.glob("/".join(f"{column}=*" for column in columns))):
        parts = (part.partition("=") for part in path.parts[-len(columns) :])
        yield {column: unquote(value) for column, _, value in parts if value != _NULL}


def _instance(
    job: Job, columns: Mapping[str, str], values: Mapping[str, str]
) -> tuple[tuple[str, str], ...] | None:
    by_parameter = {columns[name]: text for name, text in values.items() if name in columns}
    try:
        texts = {each.name: render_value(each.parse(by_parameter[each.name])) for each in job.parameters}
    except (KeyError, ValueError):
        return None
    return tuple(sorted(texts.items()))
