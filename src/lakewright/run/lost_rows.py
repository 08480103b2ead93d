"""The warning that a table is made anew, emptied or removed although the history says that it was built.

A run builds, or empties, its own instances. What others built is gone too, unless a run emptied it before. A
table that was replaced by an older copy of itself lacks what was built since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakewright.errors import Fault
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.paths import local_path
from lakewright.manifest.journal import TargetPhase
from lakewright.plan.observation import Answer
from lakewright.plan.other_runs import commands_of, run_of
from lakewright.plan.phase import Phase
from lakewright.plan.step import Lost, LostBuild, Step, parameters_text
from lakewright.relations.relation import OutputMode
from lakewright.run.kept_rows import kept_rows
from lakewright.run.losses import REMOVED_ROWS, REPLACED_ROWS, Loss
from lakewright.run.outputs import filled, target_of
from lakewright.run.table_marks import TableLook, changed_fault
from lakewright.spec.words import counted, first_of
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target
from lakewright.targets.writing import WritingTarget

if TYPE_CHECKING:
    from lakewright.manifest.store import Put
    from lakewright.plan.observation import Observation
    from lakewright.plan.resource import Resource
    from lakewright.run.build_history import BuildHistory, Instance, Key
    from lakewright.spec.models.job import Job
    from lakewright.spec.project import Project
    from lakewright.targets.context import Context

__all__ = [
    "LostRows",
    "lost_taints",
    "overwrites",
    "replaces_whole",
]

MOST_NAMED = 3

_LATER = Phrase("Afterwards, the plan of its job says what is to be built again.")

_ENTITY = "entity"
"""The kind of targets of which the manifest tells what is to be processed again."""


@dataclass(frozen=True, slots=True)
class LostRows:
    """Finds what was built into a table that is gone, that a migration replaces, or that a run removes.

    Attributes:
        history: What the runs of the project have built, for the job that is planned.
        instances: The parameters of the instances of the run.
    """

    history: BuildHistory
    instances: Sequence[Mapping[str, str]]
    _chosen: set[str] = field(default_factory=set, init=False)

    @property
    def project(self) -> Project:
        """The project."""
        return self.history.project

    @property
    def job(self) -> Job:
        """The job that is planned."""
        return self.history.job

    def lost(
        self,
        target: Target,
        context: Context,
        parameters: Mapping[str, str],
        phase: Phase,
        found: Observation,
    ) -> Lost | None:
        """Return what was built into the table of a target that a phase makes anew, empties or removes.

        None is returned if nothing else was in it, unless TRUNCATE empties a table as a whole.
        """
        workspace = context.workspace
        if Phase.BUILD not in target.phases_in(workspace):
            return None
        if phase is Phase.BUILD:
            older = self._lost_by_copy(target, context, parameters)
            if older is not None or found.filled is Answer.NO:
                return older
            return self._replaced(target, context)
        if not phase.is_cleanup:
            is_made = found.exists is Answer.NO or found.loses_rows
            if not is_made or target.name not in self.history.known_targets():
                return None
        places = target.provides(workspace, phase)
        if found.exists is Answer.NO and not phase.is_cleanup and any(map(_has_table, places)):
            return None  # CREATE enters it into the catalog
        lost = self._lost(target, context, places, is_whole=not phase.is_cleanup)
        asked = self._asked_for(target, lost, parameters) if phase is Phase.TRUNCATE else {}
        lost.pop((target.name, tuple(sorted(parameters.items()))), None)
        partly = self.history.built_into(places, in_part=True) if phase is Phase.TRUNCATE else {}
        parts = {key: job for key, (job, _) in partly.items()}
        is_told = bool(lost or parts or asked)
        return self._as_lost(target, Loss.of(phase, places, found), lost, parts, asked) if is_told else None

    def _asked_for(
        self, target: Target, lost: Mapping[Instance, Job], parameters: Mapping[str, str]
    ) -> dict[Instance, Job]:
        """Return what the run is asked to empty together with an instance of a target, with its job.

        It is the whole table, so that the first instance of the run has it all. A partition is that of its
        instance, and the slices of an entity wait again.
        """
        if not isinstance(target, WritingTarget) or target.partition:
            return {}
        now = list(map(self._key, self.instances))
        asked = {
            (name, key): job for (name, key), job in lost.items() if key in now and self._is_chosen(name)
        }
        is_first = self._key(parameters) == min((key for _, key in asked), key=now.index, default=None)
        return asked if is_first else {}

    def _lost_by_copy(self, target: Target, context: Context, parameters: Mapping[str, str]) -> Lost | None:
        """Return what the table of a target lacks that is an older copy; None if it is not."""
        look = self._look_into(target, context)
        if look is None:
            return None
        own = self._key(parameters)
        lost = {
            (target.name, key): self.job
            for key in self.history.lacked_builds(target.name, look)
            if key != own
        }
        may_hold = bool(lost) and self.history.may_hold_former_rows(target.name, look)
        kept = target.kept_rows(context.defaults) if may_hold else None
        return self._as_lost(target, Loss.of_older(look, kept), lost) if lost else None

    def _replaced(self, target: Target, context: Context) -> Lost | None:
        """Return what a build replaces of other targets; None if it has its own place.

        What a run builds afterwards is right again, and not marked any more.
        """
        workspace, defaults = context.workspace, context.defaults
        if not overwrites(target, defaults):
            return None
        places = target.provides(workspace, Phase.BUILD)
        found = self.history.standing_of_others(target.name, places, self._replaces)
        if not found:
            return None
        parts = {key: job for key, (job, is_in_part) in found.items() if is_in_part}
        whole = {key: job for key, (job, is_in_part) in found.items() if not is_in_part}
        return self._as_lost(target, Loss.of_replaced(places), whole, parts)

    def _replaces(self, job: Job, name: str, parameters: Mapping[str, str]) -> bool:
        """Return whether a build replaces all that was where it writes."""
        made = target_of(self.project, self.history.lake, job, name, parameters)
        return made is not None and made[0].kept_rows(TargetDefaults.of(self.project.config)) is None

    def lacking(self, target: Target, context: Context, parameters: Mapping[str, str]) -> str | None:
        """Return that the table of a target lacks its last build of an instance; None if it does not."""
        if target.kind == _ENTITY or Phase.BUILD not in target.phases_in(context.workspace):
            return None
        look = self.history.look(target.name, target.provides(context.workspace, Phase.BUILD))
        keys = [] if look is None else self.history.lacked_builds(target.name, look)
        keys = keys[:1] if replaces_whole(target, context.defaults) else keys
        own = self._key(parameters)
        return None if look is None or own not in keys else f"its last build is not in {look.place} any more"

    def changed_warning(
        self, target: Target, context: Context, parameters: Mapping[str, str]
    ) -> Fault | None:
        """Return that other programs have changed rows of a table of which a build leaves some; or None.

        A build that writes removed rows again is the remedy.
        """
        look = self._look_into(target, context)
        if look is None or look.changes is None:
            return None
        own = self._key(parameters)
        is_removed = all(each.operation == "DELETE" for each in look.changes.commits)
        was_built = own in self.history.last_builds(target.name)
        if is_removed and was_built and filled(target, context.workspace) is Answer.NO:
            return None
        return changed_fault(target.name, look)

    def _key(self, parameters: Mapping[str, str]) -> Key:
        """Return the key of an instance as the history has it."""
        return tuple(sorted(self.history.journal.hide_secrets(parameters).items()))

    def _look_into(self, target: Target, context: Context) -> TableLook | None:
        """Return the table whose rows a build of a target leaves in part; None if there is none."""
        if Phase.BUILD not in target.phases_in(context.workspace) or replaces_whole(target, context.defaults):
            return None
        return self.history.look(target.name, target.provides(context.workspace, Phase.BUILD))

    def _lost(
        self, target: Target, context: Context, places: frozenset[Resource], *, is_whole: bool
    ) -> dict[Instance, Job]:
        """Return what was built into places, with its job.

        Of instances that replace what the others wrote, only the last one counts; none if the target is built
        afterwards as a whole.
        """
        own, built = target.provides(context.workspace, Phase.BUILD), self.history.built_into(places)
        replaces = target.kept_rows(context.defaults) is None and (is_whole or target.kind != _ENTITY)
        same = [key for key, (_, written) in built.items() if key[0] == target.name and written == own]
        gone = (same if is_whole else same[1:]) if replaces else []
        return {key: job for key, (job, _) in built.items() if key not in gone}

    def _as_lost(
        self,
        target: Target,
        loss: Loss,
        lost: Mapping[Instance, Job],
        parts: Mapping[Instance, Job] | None = None,
        asked: Mapping[Instance, Job] | None = None,
    ) -> Lost | None:
        """Return the builds that are lost, some in part; None if the run builds them itself.

        Those that the run was asked to remove are told, but are not to be built again.
        """
        # A build that replaces rows does not make the run build these again.
        now = [] if loss.code == REPLACED_ROWS else list(map(self._key, self.instances))
        others = [(name, key) for name, key in lost if key not in now or not self._is_chosen(name)]
        in_part = {each: job for each, job in (parts or {}).items() if not (now and self._is_chosen(each[0]))}
        if not (others or asked):
            return self._lost_in_part(target, loss, in_part) if in_part else None
        # What is emptied in this run is not built again in it.
        tainted = others if loss.code == REMOVED_ROWS else list(lost)
        is_emptied = loss.kept is not None
        remedies = (
            [Phrase(loss.remedy, ": ", self._typed(others, lost, is_emptied=is_emptied), ".")]
            if others
            else []
        )
        if asked:
            what = "what the run was asked for again, too" if others else "the rows again"
            remedies.append(
                Phrase(f"To have {what}: ", self._typed(list(asked), asked, is_emptied=is_emptied), ".")
            )
        partly = ""
        if in_part:
            partly = f", and a part of what {_names(in_part)} has built is gone, too"
            remedies.append(_LATER)
        built = _built_words(loss, others or list(asked or ()), is_other=bool(others))
        fault = Fault(
            f"target {target.name!r}: {loss.told}, and {built}{partly}",
            remedy=Phrase.joined(" ", remedies),
            code=loss.code,
        )
        whole = [LostBuild(name, dict(key), loss.kept) for name, key in tainted if not self._is_entity(name)]
        return Lost(fault, loss.reason, (*whole, *self._in_part(in_part)), loss.is_older)

    def _lost_in_part(self, target: Target, loss: Loss, parts: Mapping[Instance, Job]) -> Lost:
        fault = Fault(
            f"target {target.name!r}: {loss.told}, and with it a part of what {_names(parts)} has built into "
            "the table",
            remedy=_LATER,
            code=loss.code,
        )
        return Lost(fault, loss.reason, tuple(self._in_part(parts)))

    def _in_part(self, parts: Mapping[Instance, Job]) -> Iterator[LostBuild]:
        """Yield builds of which a part is lost, each with why building it again leaves the rest."""
        defaults = TargetDefaults.of(self.project.config)
        for (name, key), job in parts.items():
            made = target_of(self.project, self.history.lake, job, name, dict(key))
            kept = None if made is None else made[0].kept_rows(defaults)
            yield LostBuild(name, dict(key), kept, is_part=True)

    def _typed(self, built: Sequence[Instance], jobs: Mapping[Instance, Job], *, is_emptied: bool) -> str:
        return Phrase.joined(", ", self._commands(built, jobs, is_emptied=is_emptied))

    def _commands(
        self, built: Sequence[Instance], jobs: Mapping[Instance, Job], *, is_emptied: bool
    ) -> Iterator[Command]:
        """Yield the commands that build instances again; other targets must not add their rows once more."""
        by_job: dict[str, list[Instance]] = {}
        for name, key in built:
            by_job.setdefault(self._job_of(name, key, jobs[name, key]).name, []).append((name, key))
        for job, of_job in by_job.items():
            chosen = [text for name in sorted({name for name, _ in of_job}) for text in ("-t", name)]
            runs = sorted((run_of(job, dict(key)) for _, key in of_job), key=lambda run: run.parameters)
            if is_emptied:
                yield from commands_of(runs, phase=Phase.TRUNCATE, options=chosen)
            yield from commands_of(runs, options=chosen)

    def _is_entity(self, name: str) -> bool:
        return name in self.project.targets and self.project.targets[name].kind == _ENTITY

    def _job_of(self, name: str, key: Sequence[tuple[str, str]], job: Job) -> Job:
        """Return the job that is planned if it builds an instance, or else the one that did."""
        is_own = name in self.job.targets and {n for n, _ in key} == {
            each.name for each in self.job.parameters
        }
        return self.job if is_own else job

    def choose(self, targets: Collection[str]) -> None:
        """Note which targets of the job the run is of."""
        self._chosen.update(targets)

    def _is_chosen(self, name: str) -> bool:
        """Return whether a target is one of those of the run."""
        return name in (self._chosen or self.job.targets)


def _names(built: Iterable[Instance]) -> str:
    """Return the targets that built instances as text."""
    return first_of(sorted({name for name, _ in built}), MOST_NAMED)


def _built_words(loss: Loss, built: Sequence[Instance], *, is_other: bool = True) -> str:
    """Return what was built into a table as text.

    Args:
        loss: How its rows are lost.
        built: The instances.
        is_other: Whether they are none of those that the run is asked for.
    """
    instances = [parameters_text(dict(key)) for key in sorted({key for _, key in built})]
    texts = first_of(instances, MOST_NAMED)
    if loss.code == REPLACED_ROWS:
        return (
            f"{first_of(sorted({name for name, _ in built}), MOST_NAMED)} had built {texts or 'rows'} into it"
        )
    what = counted(len(instances), "other instance" if is_other else "instance")
    were = f"{what} {'was' if len(instances) == 1 else 'were'} built into it"
    return f"{were}: {texts}" if texts else were


def overwrites(target: Target, defaults: TargetDefaults) -> bool:
    """Return whether a build of a target replaces all rows that are where it writes."""
    return isinstance(target, WritingTarget) and target.mode_of(defaults) is OutputMode.OVERWRITE


def replaces_whole(target: Target, defaults: TargetDefaults) -> bool:
    """Return whether each build of a target replaces all rows of its table."""
    return isinstance(target, WritingTarget) and not target.partition and target.kept_rows(defaults) is None


def _has_table(resource: Resource) -> bool:
    """Return whether the log of a Delta table is in a folder on this machine."""
    folder = local_path(resource.name) if resource.category == "file" else None
    return folder is not None and (folder / "_delta_log").is_dir()


def lost_taints(project: str, run_id: str, step: Step) -> tuple[Put, ...]:
    """Return the taints of what was in a table that a step has made anew, emptied or removed."""
    if step.lost is None:
        return ()
    reason, lost_in = f"{step.lost.reason} in run {run_id}", None if step.lost.is_older else run_id
    return tuple(
        TargetPhase(project, each.target, Phase.BUILD.value, each.parameters).tainted(
            reason,
            lost_in=None if each.is_part else lost_in,  # what is left of it is there
            kept=kept_rows(reason, each.kept),
        )
        for each in step.lost.builds
    )
