"""Tables and files of targets that do not exist any more, although the history says what was built there.

Nothing is observed but whether they exist: folders of this machine, and prefixes in S3 with one list each. Of
a Delta table, that is its log. Partitions are looked for by `lost_partitions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from lakewright.errors import Fault, LakewrightError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.files import files_at
from lakewright.lake.paths import is_s3, join, local_path
from lakewright.lake.storage_errors import moving_command
from lakewright.manifest.journal import KeptRows, Taint, TargetPhase
from lakewright.plan.other_runs import commands_of, run_of
from lakewright.plan.phase import Phase
from lakewright.plan.step import parameters_text
from lakewright.run.build_history import BuildHistory
from lakewright.run.lost_rows import replaces_whole
from lakewright.run.table_marks import changed_fault
from lakewright.spec.words import counted, first_of
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target
from lakewright.usecases.damage.damaged_tables import writes_delta
from lakewright.usecases.damage.lost_partitions import lost_partitions
from lakewright.usecases.damage.rebuild_status import Unseen
from lakewright.usecases.damage.remote_looks import SECONDS, look_within
from lakewright.usecases.staleness.declared_nodes import declared_nodes, offline_lake, sample_workspace
from lakewright.usecases.staleness.emptied import kept_rows_of
from lakewright.usecases.staleness.emptying import emptying_commands

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.plan.other_runs import OtherRun
    from lakewright.plan.resource import Resource
    from lakewright.spec.models.job import Job
    from lakewright.usecases.staleness.tainted_targets import TaintedTarget

__all__ = ["LOST", "LostOutputs", "lost_outputs"]

LOST = "lost_table"
"""The code of the faults."""

MOST_NAMED = 3

LOG = "_delta_log"
"""The folder of the log, by which a Delta table exists."""

_EMPTYING = frozenset({"truncate", "drop", "deleteFile"})
"""Kinds of targets that remove rows."""

Instance: TypeAlias = tuple[tuple[str, str], ...]
"""The sorted parameters of an instance."""


@dataclass(frozen=True, slots=True)
class LostOutputs:
    """What jobs have built and does not exist any more.

    Attributes:
        lost: A fault for each target of such a place, with what was built into it and the commands to type.
        unseen: The targets of which that is not known.
        rows_changed: That other programs have changed rows of Delta tables on this machine.
    """

    lost: tuple[Fault, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    rows_changed: tuple[Fault, ...] = ()

    def without_tainted(self, tainted: Iterable[TaintedTarget]) -> tuple[Fault, ...]:
        """Return the faults without those of targets that are to be built again in all their instances."""
        told = {(each.target, *sorted(one.items())) for each in tainted for one in each.instances}

        def is_told(fault: Fault) -> bool:
            lacked = fault.details.get("instances", ())
            return bool(lacked) and all(
                (fault.details["subject"], *sorted(each.items())) in told for each in lacked
            )

        return tuple(fault for fault in self.lost if not is_told(fault))


def lost_outputs(app: App, seconds: float = SECONDS) -> LostOutputs:
    """Return what jobs have built and does not exist any more, unless a run removed or emptied it.

    Args:
        app: The project.
        seconds: How long object stores are waited for.
    """
    outputs = [output for job in app.project.jobs.values() if job.targets for output in _outputs(app, job)]
    dropped = {each.place for each in outputs if each.kind == "drop"}
    missing: list[Output] = []
    remote: dict[str, list[Output]] = {}
    known = list(_known([one for one in outputs if one.is_kept and one.place not in dropped]))
    for each in known:
        folder = local_path(each.place.name)
        if folder is None:
            remote.setdefault(each.place.name, []).append(each)
        elif not (folder / LOG if each.is_delta else folder).exists():
            missing.append(each)
    unseen = []
    looks = {
        place: _look(app, join(place, LOG) if found[0].is_delta else place) for place, found in remote.items()
    }
    for place, exists in look_within(looks, seconds).items():
        if isinstance(exists, str):
            unseen += [Unseen(each.target, exists) for each in remote[place]]
        elif not exists:
            missing += remote[place]
    faults = {each.place: _fault(app, each) for each in missing}  # one for each place
    places = frozenset(each.place for each in missing)
    emptied = _emptied(app)
    present = (each for each in known if each.place not in places)
    kept = [each for each in present if not any(each.place.contains(one) for one in emptied)]
    older = {each.target: fault for each in kept if (fault := _older_fault(app, each)) is not None}
    partitions = lost_partitions(
        app, ((each.job, each.target) for each in kept if each.target not in older), seconds
    )
    lost = (*filter(None, faults.values()), *older.values(), *partitions.lost)
    # What was removed is built again: to take the change back as well would bring it twice.
    built_again = {fault.details["subject"] for fault in partitions.lost}
    unlost = (each for each in kept if each.target not in built_again)
    changed = {each.place: fault for each in unlost if (fault := _changed_fault(each)) is not None}
    return LostOutputs(lost, (*unseen, *partitions.unseen), tuple(changed.values()))


@dataclass(frozen=True, slots=True)
class Output:
    """A folder that a target of a job creates, and fills in BUILD if the folder is kept.

    Attributes:
        history: What the runs of the job have built.
        place: The folder, of this machine or in S3.
        is_delta: Whether it is the folder of a Delta table.
        is_replaced: Whether each build replaces all of its rows.
    """

    history: BuildHistory
    target: str
    kind: str
    is_kept: bool
    place: Resource
    is_delta: bool = False
    is_replaced: bool = False

    @property
    def job(self) -> Job:
        """The job."""
        return self.history.job


def _outputs(app: App, job: Job) -> Iterator[Output]:
    """Yield the folders that the targets of a job create; those whose path holds a parameter are samples."""
    try:
        workspace = sample_workspace(app.project, job, offline_lake(app))
        names = job.target_names(workspace.scope)
        nodes = list(declared_nodes(workspace, names, Phase.CREATE))
        built = {node.name for node in declared_nodes(workspace, names, Phase.BUILD)}
        defaults = TargetDefaults.of(app.project.config)
        history = BuildHistory(app.project, offline_lake(app), app.journal, job)
    except LakewrightError:
        return
    for node in nodes:
        kind = app.project.targets[node.name].kind
        is_kept = kind != "entity" and node.name in built
        for place in node.provides:
            is_folder = place.category == "file" and "*" not in place.name
            if is_folder and (is_s3(place.name) or local_path(place.name) is not None):
                is_delta = is_kept and writes_delta(workspace, node.name)
                is_replaced = is_delta and replaces_whole(Target.named(workspace, node.name), defaults)
                yield Output(
                    history,
                    node.name,
                    kind,
                    is_kept,
                    place,
                    is_delta=is_delta,
                    is_replaced=is_replaced,
                )


def _emptied(app: App) -> list[Resource]:
    """Return what targets empty or remove in BUILD."""
    found: list[Resource] = []
    for job in app.project.jobs.values():
        names = [name for name, each in app.project.targets.items() if each.kind in _EMPTYING]
        try:
            workspace = sample_workspace(app.project, job, offline_lake(app)) if names else None
        except LakewrightError:
            continue
        for node in declared_nodes(workspace, names, Phase.BUILD) if workspace is not None else ():
            found += node.provides
    return found


def _known(outputs: Iterable[Output]) -> Iterator[Output]:
    """Yield those whose targets the last runs of their job have built, or found built."""
    known: dict[str, frozenset[str]] = {}
    for each in outputs:
        if each.job.name not in known:
            known[each.job.name] = each.history.known_targets()
        if each.target in known[each.job.name]:
            yield each


def _look(app: App, place: str) -> Callable[[], bool | str]:
    def look() -> bool | str:
        try:
            return files_at(place, app.lake).exists(place)
        except LakewrightError as error:
            return error.message

    return look


def _fault(app: App, output: Output) -> Fault | None:
    """Return what was built into a missing folder, with the commands that build it again; None if nothing."""
    built = output.history.built_into(frozenset({output.place}))
    by_target: dict[str, dict[Instance, Job]] = {}
    seen: set[tuple[str, frozenset[Resource]]] = set()
    for (name, instance), (job, written) in built.items():
        replaces = name not in kept_rows_of(app, job, [name])
        # What each instance overwrites has the rows of the last one only, which comes first.
        if not (replaces and (name, written) in seen):
            by_target.setdefault(name, {})[instance] = job
        seen.add((name, written))
    if not by_target:
        return None
    typed = [
        command
        for name, instances in by_target.items()
        for command in commands_of(
            sorted((run_of(job.name, dict(key)) for key, job in instances.items()), key=_parameters),
            options=("-t", name),
        )
    ]
    named = sorted({key for instances in by_target.values() for key in instances if key})
    were = f"{counted(len(named), 'instance')} {'was' if len(named) == 1 else 'were'} built into it: "
    texts = [parameters_text(dict(key)) for key in named]
    what = f"{were}{first_of(texts, MOST_NAMED)}" if named else "it was built"
    folder = local_path(output.place.name)
    is_left = output.is_delta and folder is not None and any(folder.glob("*"))
    gone = f"has no {LOG} any more, by which it is a Delta table" if is_left else "does not exist any more"
    # CREATE refuses a folder with other files.
    lines = [*([moving_command(output.place.name)] if is_left else []), *typed]
    return Fault(
        f"target {output.target!r}: {output.place.name} {gone}, and {what}",
        remedy=Phrase(
            "If it can be brought back, do so before a run creates it anew. Otherwise build it again: ",
            Phrase.joined(", ", lines),
            ".",
        ),
        code=LOST,
        details={
            "subject": output.target,
            "commands": lines,
            "instances": [dict(key) for key in by_target.get(output.target, {})],
        },
    )


def _older_fault(app: App, output: Output) -> Fault | None:
    """Return that a Delta table on this machine lacks builds of its target; None if it does not."""
    look = output.history.look(output.target, (output.place,)) if output.is_delta else None
    keys = [] if look is None else output.history.lacked_builds(output.target, look)
    if look is None or not keys:
        return None
    keys = keys[:1] if output.is_replaced else keys
    may_hold = output.history.may_hold_former_rows(output.target, look)
    kept = kept_rows_of(app, output.job, [output.target]).get(output.target) if may_hold else None
    typed = _commands(output, keys) if kept is None else _emptying_commands(app, output, keys, kept)
    texts = first_of([parameters_text(dict(key)) for key in sorted(keys) if key], MOST_NAMED)
    lacks = "may lack" if look.is_unknown else "lacks"
    return Fault(
        f"target {output.target!r}: {look.told}{f'. It {lacks} {texts}' if texts else ''}",
        remedy=Phrase(look.advice, ": ", Phrase.joined(", ", typed), "."),
        code=LOST,
        details={
            "subject": output.target,
            "commands": list(typed),
            "instances": [dict(key) for key in keys],
        },
    )


def _changed_fault(output: Output) -> Fault | None:
    """Return that other programs have changed rows of a Delta table on this machine; None if none has."""
    look = output.history.look(output.target, (output.place,)) if output.is_delta else None
    if look is None or look.changes is None:
        return None
    last = next(iter(output.history.last_builds(output.target)), None)
    again = None if last is None or not output.is_replaced else _commands(output, [last], "--force")[0]
    return changed_fault(output.target, look, again)


def _commands(output: Output, keys: Iterable[Instance], *options: str) -> tuple[Command, ...]:
    """Return the commands that build instances again."""
    runs = sorted((run_of(output.job.name, dict(key)) for key in keys), key=_parameters)
    return tuple(commands_of(runs, options=("-t", output.target, *options)))


def _emptying_commands(app: App, output: Output, keys: Iterable[Instance], kept: str) -> tuple[Command, ...]:
    """Return the commands that build instances again where nobody knows which rows a build would leave."""
    project, phase = app.project.name, Phase.BUILD.value
    places = (TargetPhase(project, output.target, phase, dict(key)) for key in keys)
    return emptying_commands(app, output.job, [Taint(place, kept, kept=KeptRows(kept)) for place in places])


def _parameters(run: OtherRun) -> tuple[tuple[str, str], ...]:
    return run.parameters
