"""The commands that do again what a failed run left undone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakewright.errors import DataLossError, LakewrightError, MigrationError
from lakewright.errors.fault import remedy_of
from lakewright.errors.phrase import Command, Option, Phrase, Placeholder
from lakewright.manifest.item import Item
from lakewright.manifest.journal import Run
from lakewright.manifest.lock import FAILED_ITEMS
from lakewright.plan.phase import Phase
from lakewright.run.leftovers import is_entry_undone
from lakewright.slices.discover import natural_key, slice_name
from lakewright.slices.other_runs import entity_name, takes_recorded
from lakewright.spec.words import counted
from lakewright.targets.writing import IS_EMPTY
from lakewright.usecases.failed_runs.next_slices import NextSlices
from lakewright.usecases.failed_runs.undone_runs import builds_left, given_instances, hidden_parameters
from lakewright.usecases.slice_times.declared_times import is_timed
from lakewright.usecases.slice_times.refused_times import (
    blocking_time,
    commands_for_times,
    gives_place,
    ready_timed,
    refused_time,
)
from lakewright.usecases.staleness.repeated_appends import targets_adding_once

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.models.job import Job

__all__ = [
    "NextStep",
    "checks_left",
    "failed_items",
    "is_resumable",
    "is_rewind",
    "next_step",
    "resume_command",
]

_REFUSED = (DataLossError.code, MigrationError.code)
"""Codes of errors by which a run is refused as long as the declaration stays."""

REWINDS = ("UNDO", "REBUILD")
"""The phases under which the history lists undos and rebuilds, whose runs are named after their entities."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to do about a failed run once its cause is mended.

    Attributes:
        commands: The commands to type, in this order. The last one resumes the run, unless more slices need a
            command first than are named.
        refused: Why the run would fail again if it were only resumed; None if nothing speaks against it.
        caution: What was refused, and may be again, as a sentence with what accepts it; None for nothing.
        left_out: What a run that is only resumed would leave out, so that the command runs all of the job.
        is_check_only: Whether only VERIFY failed, so that nothing may be left to do.
        gives_place: Whether the first command puts the slices that the run would refuse in their place;
            otherwise it gives them later times.
        comes_last: Whether the run checks what other commands mend before.
    """

    commands: tuple[Command, ...]
    refused: str | None = None
    caution: str | None = None
    left_out: str | None = None
    is_check_only: bool = False
    gives_place: bool = False
    comes_last: bool = False


def failed_items(app: App, run: Run) -> list[Item]:
    """Return the items because of whose failures a run ended, as far as these still wait for somebody."""
    undone = (each for each in app.journal.targets(run.run_id) if is_entry_undone(each))
    ids = dict.fromkeys(item for each in undone for item in each.get(FAILED_ITEMS, ()))
    return [item for item in app.store.read(list(ids)).values() if item.failed is not None]


def next_step(app: App, run: Run, slices: NextSlices | None = None) -> NextStep:
    """Return what to do about a failed run, as the table and the slices that are ready are now.

    Args:
        app: The project.
        run: The run.
        slices: What runs take next; given to several calls, it is read once.
    """
    resume = resume_command(run)
    if is_rewind(run):
        return NextStep((resume,))
    error = refused_time(app, run, builds_left(app, (run,)))
    if error is None:
        return _resumed(app, run, resume, NextSlices(app) if slices is None else slices)
    typed, is_all = commands_for_times(error)
    return NextStep((*typed, resume) if is_all else typed, error.message, gives_place=gives_place(error))


def _resumed(app: App, run: Run, resume: Command, slices: NextSlices) -> NextStep:
    """Return what to do about a run none of whose slices has a time that it would refuse."""
    blocked = _blocked(slices, run)
    if blocked is not None:
        return NextStep((resume,), Phrase(f"{blocked.message}. ", blocked.remedy or ""))
    if (late := _late(slices, run)) is not None:
        return NextStep((resume,), f"{late}: first type what is named for the slice")
    if (refused := _refused_migration(app, run)) is not None:
        return NextStep((resume,), caution=refused)
    left_out = _left_out(slices, run)
    whole = None if left_out is None else _whole_command(app, run)
    if whole is None:
        checks = checks_left(app, run)
        skipped = _skipped(slices, run, checks) if checks else None
        if skipped is not None:
            accept = Command("history", "accept", run.run_id)
            return NextStep((accept,), caution=f"{skipped}, so that nothing may be left to do")
        return NextStep((resume,), is_check_only=bool(checks))
    return NextStep((whole,), left_out=left_out)


def checks_left(app: App, run: Run) -> list[Mapping[str, Any]]:
    """Return what a run was to verify and has left undone; nothing if it has left other steps, too."""
    if run.finished is None:
        return []
    undone = [each for each in app.journal.targets(run.run_id) if is_entry_undone(each)]
    return undone if all(each["phase"] == Phase.VERIFY for each in undone) else []


def _skipped(slices: NextSlices, run: Run, checks: Sequence[Mapping[str, Any]]) -> str | None:
    """Return that a slice is skipped which the instances take in which VERIFY found nothing; or None."""
    app, job = slices.app, slices.app.project.jobs.get(run.job)
    if job is None or not all(each.get(IS_EMPTY) for each in checks):
        return None
    declared = (app.project.targets[name].raw for name in job.targets if name in app.project.targets)
    for target in declared:
        called = entity_name(app.project, target)
        names = () if called is None else slices.skipped(app.project.entity(called))
        for name in names:
            instances = (each.get("instance", {}) for each in checks)
            if any(takes_recorded(app.project, job, target, each, name) for each in instances):
                return f"{name} of {called} is skipped"
    return None


def _blocked(slices: NextSlices, run: Run) -> LakewrightError | None:
    """Return why a job would process no slice of an entity that a run left undone, or None."""
    app, steps = slices.app, slices.steps(run).items()
    names = {entity_name(app.project, app.project.targets[name].raw) for name, each in steps if each[False]}
    undone = {name: entity for name, entity in app.project.entities.items() if entity.called in names}
    ready = {entity.called: found for entity, found in ready_timed(app, undone)}
    timed = (entity for entity in undone.values() if is_timed(app, entity.called))
    for entity in timed:
        unseen = map(slice_name, slices.unseen(entity))
        known = sorted((*ready.get(entity.called, ()), *unseen), key=natural_key)
        if (error := blocking_time(app, entity, known)) is not None:
            return error
    return None


def _refused_migration(app: App, run: Run) -> str | None:
    """Return that CREATE has refused a migration, or to lose rows, and what to do about it, or None.

    What a slice would lose is told with the slice.
    """
    for each in app.journal.targets(run.run_id):
        error, definition = each.get("error") or {}, app.project.targets.get(each["name"])
        is_entity = definition is not None and definition.kind == "entity"
        if not is_entry_undone(each) or is_entity or error.get("code") not in _REFUSED:
            continue
        told = f"it was refused: {str(error['message']).splitlines()[0]}. If the declaration stays as it is, "
        if error["code"] == DataLossError.code:
            return Phrase(f"{told}add ", Option("--allow-data-loss"))
        remedy = Phrase(remedy_of(error) or "Change it.").without_end()
        return Phrase(told, remedy.uncapitalized())
    return None


def _late(slices: NextSlices, run: Run) -> str | None:
    """Return that slices are late which a run takes once it is resumed, so that it fails; None if none is."""
    app = slices.app
    job = app.project.jobs.get(run.job)
    if job is None:
        return None
    for name, instances in slices.steps(run).items():
        declared = app.project.targets[name].raw
        entity = entity_name(app.project, declared)
        late = () if entity is None or not instances[False] else slices.late(app.project.entity(entity))
        for item in late:
            called = slice_name(item)
            if any(takes_recorded(app.project, job, declared, each, called) for each in instances[False]):
                return f"{called} of {entity} is late"
    return None


def _whole_command(app: App, run: Run) -> Command | None:
    """Return the command that does all of a run again, but adds no rows that an earlier one has added.

    None if all of its targets would.
    """
    names = run.facts.get("targets") or targets_adding_once(app, run.job, given_instances(app.project)(run))
    if names == ():
        return None
    chosen = replace(run, facts={**run.facts, "targets": names or ()})
    return _job_command(chosen)


def _left_out(slices: NextSlices, run: Run) -> str | None:
    """Return which slices wait in entities that a run has processed: a run that is resumed skips these.

    What failed after them, such as a check, may depend on them: they may be the correction.
    """
    app = slices.app
    job = app.project.jobs.get(run.job)
    if job is None:
        return None
    waiting = {}
    for name, instances in slices.steps(run).items():
        declared = app.project.targets[name].raw
        entity = entity_name(app.project, declared)
        if entity is not None and (count := _count_left_out(slices, job, declared, entity, instances)):
            waiting[entity] = count
    if not waiting:
        return None
    return " and ".join(f"{counted(count, 'slice')} of {entity}" for entity, count in waiting.items())


def _count_left_out(
    slices: NextSlices,
    job: Job,
    declared: Mapping[str, Any],
    entity: str,
    instances: Mapping[bool, Sequence[Mapping[str, str]]],
) -> int:
    """Return how many ready slices only those instances of a target take that a run has done."""
    app = slices.app

    def is_taken(is_done: bool, name: str) -> bool:
        return any(takes_recorded(app.project, job, declared, each, name) for each in instances[is_done])

    ready = slices.ready(app.project.entity(entity))
    return sum(is_taken(True, name) and not is_taken(False, name) for name in ready)


def is_rewind(run: Run) -> bool:
    """Return whether a run is an undo or a rebuild, which the history lists beside those of jobs."""
    return run.phase in REWINDS


def is_resumable(run: Run) -> bool:
    """Return whether a page may offer to resume a run: not one that rewinds or removes tables."""
    return not is_rewind(run) and run.phase not in (Phase.TRUNCATE, Phase.DESTROY)


def resume_command(run: Run) -> Command:
    """Return the command that resumes a run, of the targets that it was restricted to.

    A secret value becomes `<name>`, which no shell accepts.
    """
    return _rewind_command(run) if is_rewind(run) else _job_command(run, "--resume")


def _job_command(run: Run, *options: str) -> Command:
    """Return the command that runs the job of a run again, with further options."""
    hidden = hidden_parameters(run)
    arguments = [
        Placeholder(f"{name}=<{name}>") if name in hidden else argument
        for name, argument in zip(run.parameters, run.arguments, strict=True)
    ]
    return Command(
        *("job", run.job, run.phase.lower(), *_choice(run)),
        *arguments,
        *options,
        *(["--yes"] if run.phase in (Phase.TRUNCATE, Phase.DESTROY) else []),
    )


def _choice(run: Run) -> tuple[str, ...]:
    """Return the options by which a run left out targets or phases."""
    chosen = tuple(option for name in run.facts.get("targets") or () for option in ("-t", str(name)))
    return ("-nl", *chosen) if run.facts.get("no_lifecycle") else chosen


def _rewind_command(run: Run) -> Command:
    """Return the command that does an undo or a rebuild again; it continues one that was interrupted."""
    facts = run.facts
    flags = [f"--{flag}" for flag in ("requeue", "check") if facts.get(flag)]
    started = [f"--{name}={facts[name]}" for name in ("from", "from-time") if facts.get(name)]
    started += [word for name in facts.get("include") or () for word in ("--include", str(name))]
    names = [run.phase.lower(), run.job.partition(" ")[2], *([facts["slice"]] if facts.get("slice") else [])]
    return Command(*map(str, names), *started, *flags)
