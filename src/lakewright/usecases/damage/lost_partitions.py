"""Partitions that have no rows any more, although one of the last runs of a job has filled them.

Only the last runs are looked at, and of each target at most `MOST` instances, the last ones first. A
partition of files is a folder: in S3, it takes two requests. The rows of a Delta table are told by its log,
which is read once for each target. The rest of the history is read only once something is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from lakewright.errors import Fault, LakewrightError, NotInstalled
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.files import files_at
from lakewright.lake.lake import Lake
from lakewright.plan.observation import Answer
from lakewright.plan.other_runs import commands_of, run_of
from lakewright.plan.phase import Phase
from lakewright.plan.step import parameters_text
from lakewright.run.build_history import BuildHistory
from lakewright.run.outputs import target_of
from lakewright.spark.conf import SessionSettings
from lakewright.spark.session import NoSession
from lakewright.spec.words import counted, first_of
from lakewright.targets.writing import WritingTarget
from lakewright.usecases.damage.rebuild_status import Unseen
from lakewright.usecases.damage.remote_looks import look_within

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.lake.partition import Partition
    from lakewright.plan.resource import Resource
    from lakewright.relations.relation import StoredRelation
    from lakewright.spec.models.job import Job
    from lakewright.workspace.workspace import Workspace

__all__ = ["LOST_PARTITION", "MOST", "LostPartitions", "lost_partitions"]

LOST_PARTITION = "lost_partition"
"""The code of the faults."""

MOST = 20
"""The largest number of instances of a target that are looked for."""

MOST_NAMED = 3

Instance: TypeAlias = tuple[tuple[str, str], ...]
"""The sorted parameters of an instance."""


@dataclass(frozen=True, slots=True)
class LostPartitions:
    """Partitions that the last runs have filled and that are gone.

    Attributes:
        lost: A fault for each target, with the instances and the commands to type.
        unseen: The targets of which that is not known.
    """

    lost: tuple[Fault, ...] = ()
    unseen: tuple[Unseen, ...] = ()


def lost_partitions(app: App, targets: Iterable[tuple[Job, str]], seconds: float) -> LostPartitions:
    """Return the partitions of targets that are gone, unless a run emptied or removed them.

    Args:
        app: The project.
        targets: The targets, each with a job that builds it.
        seconds: How long object stores are waited for.
    """
    found: dict[str, _Filled] = {}
    lake = _lake(app)
    rows: dict[str, BuildHistory] = {}
    for job, name in targets:
        history = rows.setdefault(job.name, BuildHistory(app.project, lake, app.journal, job))
        if name not in found:
            found[name] = _Filled(name, history, dict(_partitions(name, history)))
    looks = {name: _look(each, lake) for name, each in found.items() if each.partitions}
    lost: list[Fault] = []
    unseen: list[Unseen] = []
    with lake.observing():
        seen = look_within(looks, seconds)
    for name, gone in seen.items():
        if isinstance(gone, str):
            unseen.append(Unseen(name, gone))
        elif (fault := _fault(found[name], gone)) is not None:
            lost.append(fault)
    return LostPartitions(tuple(lost), tuple(unseen))


@dataclass(frozen=True, slots=True)
class _Partition:
    """A partition that an instance of a target has filled.

    Attributes:
        places: The folders of its files, or the partition of the table.
    """

    relation: StoredRelation
    workspace: Workspace
    partition: Partition
    places: frozenset[Resource]

    def is_gone(self, lake: Lake) -> bool:
        """Return whether it has no files, or no rows in its table."""
        if all(each.category == "file" and not each.partition for each in self.places):
            return not any(files_at(each.name, lake).exists(each.name) for each in self.places)
        return self.relation.observe(self.workspace, self.partition).filled is Answer.NO


def _lake(app: App) -> Lake:
    refused = NotInstalled("status starts no Spark", remedy=Phrase("Type ", Command("plan"), "."))
    settings = SessionSettings(app.project.basedir)
    return Lake(app.project.lake, settings, sessions=NoSession(refused), storage=app.lake.storage)


@dataclass(frozen=True, slots=True)
class _Filled:
    """The partitions that the last runs of a job have filled by a target."""

    target: str
    history: BuildHistory
    partitions: Mapping[Instance, _Partition]


def _partitions(name: str, history: BuildHistory) -> Iterator[tuple[Instance, _Partition]]:
    """Yield the instances of a target whose last build wrote rows to a partition of their own."""
    builds = [key for key, entry in history.last_builds(name).items() if _has_rows(entry)]
    for key in builds[:MOST]:
        made = target_of(history.project, history.lake, history.job, name, dict(key))
        if made is None:
            continue
        target, workspace = made
        if not isinstance(target, WritingTarget) or not target.partition:
            return
        try:
            places = target.provides(workspace, Phase.BUILD)
            yield key, _Partition(target.stored(workspace), workspace, target.partition, places)
        except LakewrightError:  # a definition is wrong, which is told by itself
            return


def _has_rows(entry: Mapping[str, Any]) -> bool:
    rows = (entry.get("metrics") or {}).get("target_records")
    return isinstance(rows, int) and rows > 0


def _look(filled: _Filled, lake: Lake) -> Callable[[], frozenset[Instance] | str]:
    def look() -> frozenset[Instance] | str:
        try:
            return frozenset(key for key, each in filled.partitions.items() if each.is_gone(lake))
        except LakewrightError as error:
            return error.message

    return look


def _fault(filled: _Filled, found: Collection[Instance]) -> Fault | None:
    """Return what is gone; None if the history says that somebody has removed it all."""
    name, job, parts = filled.target, filled.history.job, filled.partitions
    tables = frozenset(each for key in found for each in parts[key].relation.resources(parts[key].workspace))
    built = filled.history.built_into(tables) if tables else {}
    gone = [key for key in sorted(found) if (name, key) in built]
    if not gone:
        return None
    runs = [run_of(job.name, dict(key)) for key in gone]
    builds = commands_of(runs, options=("-t", name))
    removed = commands_of(runs, phase=Phase.TRUNCATE, options=("-t", name))
    were = f"{counted(len(gone), 'instance')} {'was' if len(gone) == 1 else 'were'} built into"
    places = sorted({each.name for key in gone for each in parts[key].places})
    texts = [parameters_text(dict(key)) for key in gone]
    return Fault(
        f"target {name!r}: {were} partitions that have no rows any more: {first_of(texts, MOST_NAMED)}, "
        f"in {first_of(places, MOST_NAMED)}",
        remedy=Phrase(
            "Build them again: ",
            Phrase.joined(", ", builds),
            ". If somebody removed them on purpose, record that: ",
            Phrase.joined(", ", removed),
            ".",
        ),
        code=LOST_PARTITION,
        details={
            "subject": name,
            "commands": list(builds),
            "instances": [dict(key) for key in gone],
        },
    )
