"""The warning that a table is made anew, emptied or removed although the history says that it was built.

A run builds, or empties, its own instances. What others built is gone too, unless a run emptied it before. A
table that was replaced by an older copy of itself lacks what was built since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, TypeAlias

from lakewright.errors import Fault
from lakewright.lake.paths import local_path
from lakewright.manifest.journal import TargetPhase
from lakewright.plan.observation import Answer
from lakewright.plan.other_runs import commands_of, run_of
from lakewright.plan.phase import Phase
from lakewright.plan.step import Step, parameters_text
from lakewright.run.former_names import FormerNames
from lakewright.run.leftovers import is_built, is_entry_undone
from lakewright.run.losses import LOST_ROWS, REMOVED_ROWS, Loss
from lakewright.run.outputs import filled, target_of, written_by
from lakewright.run.table_marks import TableLook, TableMark, changed_fault, look_at
from lakewright.spec.words import counted, first_of
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target
from lakewright.targets.writing import WritingTarget

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.journal import Journal
    from lakewright.manifest.store import Put
    from lakewright.plan.observation import Observation
    from lakewright.plan.resource import Resource
    from lakewright.spec.models.job import Job
    from lakewright.spec.project import Project
    from lakewright.targets.context import Context

__all__ = [
    "LostRows",
    "lost_taints",
    "replaces_whole",
]

FEW, RUNS = 20, 1000
"""Numbers of last runs: of the job, in which a table is looked for at all; of the project, for all builds."""

MOST_NAMED = 3

_CLEANUP = (Phase.TRUNCATE.value, Phase.DESTROY.value)
_ENTITY = "entity"
"""The kind of targets of which the manifest tells what is to be processed again."""

Key: TypeAlias = tuple[tuple[str, str], ...]
"""The sorted parameters of an instance."""

Instance: TypeAlias = tuple[str, Key]
"""The name of a target, and the sorted parameters of an instance."""


@dataclass(frozen=True, slots=True)
class LostRows:
    """Finds what was built into a table that is gone, that a migration replaces, or that a run removes.

    Attributes:
        job: The job that is planned.
        instances: The parameters of the instances of the run.
    """

    project: Project
    lake: Lake
    journal: Journal
    job: Job
    instances: Sequence[Mapping[str, str]]
    _chosen: set[str] = field(default_factory=set, init=False)
    _seen: list[tuple[Job, str, str, Mapping[str, str]]] = field(default_factory=list, init=False)
    _last: list[Mapping[str, Any]] = field(default_factory=list, init=False)
    _places: dict[tuple[str, str, str, Key], frozenset[Resource]] = field(default_factory=dict, init=False)
    _builds: dict[str, Mapping[Key, Mapping[str, Any]]] = field(default_factory=dict, init=False)
    _looks: dict[tuple[str, frozenset[Resource]], TableLook | None] = field(default_factory=dict, init=False)

    def warning(
        self,
        target: Target,
        context: Context,
        parameters: Mapping[str, str],
        phase: Phase,
        found: Observation,
    ) -> Fault | None:
        """Return the warning for a target whose table a phase makes anew, empties or removes.

        None is returned if nothing else was in it.
        """
        workspace = context.workspace
        if Phase.BUILD not in target.phases_in(workspace):
            return None
        if phase is Phase.BUILD:
            return self._older_warning(target, context, parameters)
        if not phase.is_cleanup:
            is_made = found.exists is Answer.NO or found.loses_rows
            if not is_made or target.name not in self.known_targets():
                return None
        places = target.provides(workspace, phase)
        if found.exists is Answer.NO and not phase.is_cleanup and any(map(_has_table, places)):
            return None  # CREATE enters it into the catalog
        lost = self._lost(target, context, places, is_whole=not phase.is_cleanup)
        lost.pop((target.name, tuple(sorted(parameters.items()))), None)
        partly = self.built_into(places, in_part=True) if phase is Phase.TRUNCATE else {}
        parts = {key: job for key, (job, _) in partly.items()}
        return self._fault(target, Loss.of(phase, places, found), lost, parts) if lost or parts else None

    def _older_warning(self, target: Target, context: Context, parameters: Mapping[str, str]) -> Fault | None:
        look = self._look_into(target, context)
        if look is None:
            return None
        own = self._key(parameters)
        lost = {(target.name, key): self.job for key in self.lacked_builds(target.name, look) if key != own}
        kept = target.kept_rows(context.defaults) if look.is_unknown else None
        return self._fault(target, Loss.of_older(look, kept), lost) if lost else None

    def lacking(self, target: Target, context: Context, parameters: Mapping[str, str]) -> str | None:
        """Return that the table of a target lacks its last build of an instance; None if it does not."""
        if target.kind == _ENTITY or Phase.BUILD not in target.phases_in(context.workspace):
            return None
        look = self.look(target.name, target.provides(context.workspace, Phase.BUILD))
        keys = [] if look is None else self.lacked_builds(target.name, look)
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
        was_built = own in self.last_builds(target.name)
        if is_removed and was_built and filled(target, context.workspace) is Answer.NO:
            return None
        return changed_fault(target.name, look)

    def _key(self, parameters: Mapping[str, str]) -> Key:
        """Return the key of an instance as the history has it."""
        return tuple(sorted(self.journal.hide_secrets(parameters).items()))

    def _look_into(self, target: Target, context: Context) -> TableLook | None:
        """Return the table whose rows a build of a target leaves in part; None if there is none."""
        if Phase.BUILD not in target.phases_in(context.workspace) or replaces_whole(target, context.defaults):
            return None
        return self.look(target.name, target.provides(context.workspace, Phase.BUILD))

    def look(self, name: str, places: Collection[Resource]) -> TableLook | None:
        """Return the table that a target writes, which is looked at once; None if none is on this machine."""
        key = (name, frozenset(each.whole for each in places))
        if key not in self._looks:
            self._looks[key] = look_at(self.lake, key[1], partial(self._marks, name))
        return self._looks[key]

    def _marks(self, name: str) -> Iterator[TableMark]:
        """Yield the marks of the last builds of a target."""
        yield from filter(None, map(TableMark.from_entry, self.last_builds(name).values()))

    def lacked_builds(self, name: str, look: TableLook) -> list[Key]:
        """Return the instances of a target whose last builds its table does not have, newest first."""

        def is_lacked(built: tuple[Key, Mapping[str, Any]]) -> bool:
            written = TableMark.from_entry(built[1])
            return written is not None and not look.mark.comes_after(written)

        return [key for key, _ in takewhile(is_lacked, self.last_builds(name).items())]

    def _lost(
        self, target: Target, context: Context, places: frozenset[Resource], *, is_whole: bool
    ) -> dict[Instance, Job]:
        """Return what was built into places, with its job.

        Of instances that replace what the others wrote, only the last one counts; none if the target is built
        afterwards as a whole.
        """
        own, built = target.provides(context.workspace, Phase.BUILD), self.built_into(places)
        replaces = target.kept_rows(context.defaults) is None and (is_whole or target.kind != _ENTITY)
        same = [key for key, (_, written) in built.items() if key[0] == target.name and written == own]
        gone = (same if is_whole else same[1:]) if replaces else []
        return {key: job for key, (job, _) in built.items() if key not in gone}

    def _fault(
        self,
        target: Target,
        loss: Loss,
        lost: Mapping[Instance, Job],
        parts: Mapping[Instance, Job] | None = None,
    ) -> Fault | None:
        """Return the fault of builds that are lost, of some in part; None if the run builds them itself."""
        now = list(map(self._key, self.instances))
        others = [(name, key) for name, key in lost if key not in now or not self._is_chosen(name)]
        in_part = {each: job for each, job in (parts or {}).items() if not self._is_chosen(each[0])}
        if not others:
            return self._fault_in_part(target, loss, in_part) if in_part else None
        # What is emptied in this run is not built again in it.
        tainted = others if loss.code == REMOVED_ROWS else list(lost)
        typed = ", ".join(
            f"`{each}`" for each in self._commands(others, lost, is_emptied=loss.kept is not None)
        )
        instances = [parameters_text(dict(key)) for key in sorted({key for _, key in others})]
        were = f"{counted(len(instances), 'other instance')} {'was' if len(instances) == 1 else 'were'}"
        return Fault(
            f"target {target.name!r}: {loss.told}, and {were} built into it: "
            f"{first_of(instances, MOST_NAMED)}",
            remedy=f"{loss.remedy}: {typed}.",
            code=loss.code,
            details={
                "reason": loss.reason,
                "lost": [
                    [name, dict(key), loss.kept, False] for name, key in tainted if not self._is_entity(name)
                ]
                + self._kept_in_part(in_part),
                "is_older": loss.is_older,
            },
        )

    def _fault_in_part(self, target: Target, loss: Loss, parts: Mapping[Instance, Job]) -> Fault:
        names = sorted({name for name, _ in parts})
        return Fault(
            f"target {target.name!r}: {loss.told}, and with it a part of what {first_of(names, MOST_NAMED)} "
            "has built into the table",
            remedy="Afterwards, `lakewright status` says what to type for it.",
            code=loss.code,
            details={"reason": loss.reason, "lost": self._kept_in_part(parts), "is_older": False},
        )

    def _kept_in_part(self, parts: Mapping[Instance, Job]) -> list[list[Any]]:
        """Return builds of which a part is lost, each with why building it again leaves the rest."""
        defaults, found = TargetDefaults.of(self.project.config), []
        for (name, key), job in parts.items():
            made = target_of(self.project, self.lake, job, name, dict(key))
            kept = None if made is None else made[0].kept_rows(defaults)
            found.append([name, dict(key), kept, True])
        return found

    def _commands(
        self, built: Sequence[Instance], jobs: Mapping[Instance, Job], *, is_emptied: bool
    ) -> Iterator[str]:
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

    def known_targets(self) -> frozenset[str]:
        """Return the targets that one of the job's last runs built, or found built."""
        return frozenset(
            each["name"]
            for each in self._last_entries()
            if each["phase"] == Phase.BUILD.value and not is_entry_undone(each)
        )

    def last_builds(self, name: str) -> Mapping[Key, Mapping[str, Any]]:
        """Return the entries of instances of a target whose last step in the job's last runs was a build."""
        if name not in self._builds:
            found: dict[Key, Mapping[str, Any]] = {}
            for each in self._last_entries():
                if each["name"] == name and (each["phase"] in _CLEANUP or is_built(each)):
                    found.setdefault(tuple(sorted(each.get("instance", {}).items())), each)
            self._builds[name] = {key: each for key, each in found.items() if is_built(each)}
        return self._builds[name]

    def _last_entries(self) -> Sequence[Mapping[str, Any]]:
        """Return the entries of the job's last runs, the last ones first."""
        if not self._last:
            names = FormerNames(self.project, self.lake, self.journal)
            runs = self.journal.runs(FEW, project=self.project.name, job=self.job.name)
            self._last.extend(each for run in runs for each in reversed(list(names.entries(run))))
        return self._last

    def built_into(
        self, created: frozenset[Resource], *, in_part: bool = False
    ) -> dict[Instance, tuple[Job, frozenset[Resource]]]:
        """Return what was built into a place since it was emptied, with its job and what it wrote.

        The last builds come first.

        Args:
            created: The place.
            in_part: Whether only what is there in part is returned, with other parts in other places.
        """
        emptied: set[Resource] = set()
        seen: set[Instance] = set()
        of_table: dict[str, bool] = {}
        found = {}
        for job, name, phase, parameters in self._steps():
            key = (name, tuple(sorted(parameters.items())))
            if name not in of_table:  # each name is looked up once
                tables = {each.whole for each in self._written(job, name, parameters)}
                of_table[name] = any(each.whole.contains(one) for one in tables for each in created)
            if key in seen or not of_table[name]:
                continue
            written = self._written(job, name, parameters, phase)
            if phase in _CLEANUP:
                emptied |= written
                continue
            seen.add(key)
            is_there = not all(any(one.contains(each) for one in emptied) for each in written)
            pairs = [(each, one) for each in created for one in written]
            is_within = any(each.contains(one) for each, one in pairs)
            is_found = not is_within and any(e.intersects(o) for e, o in pairs) if in_part else is_within
            if is_there and is_found:
                found[key] = (job, written)
        return found

    def _written(
        self, job: Job, name: str, parameters: Mapping[str, str], phase: str = Phase.BUILD.value
    ) -> frozenset[Resource]:
        """Return what an instance has written or emptied; each answer is looked up once."""
        key = (job.name, name, phase, tuple(sorted(parameters.items())))
        if key not in self._places:
            self._places[key] = written_by(self.project, self.lake, job, name, parameters, phase=Phase(phase))
        return self._places[key]

    def _steps(self) -> Sequence[tuple[Job, str, str, Mapping[str, str]]]:
        """Return the steps of the history that have built or emptied something, the last one first."""
        if not self._seen:
            self._seen.extend(self._read_steps())
        return self._seen

    def _read_steps(self) -> Iterator[tuple[Job, str, str, Mapping[str, str]]]:
        names = FormerNames(self.project, self.lake, self.journal)
        for run in islice(self.journal.runs(project=self.project.name), RUNS):
            job = self.project.jobs.get(run.job)
            entries = [] if job is None else list(names.entries(run))
            for each in reversed(entries):
                is_emptied = each["phase"] in _CLEANUP and not is_entry_undone(each)
                if job is not None and (is_built(each) or is_emptied):
                    yield job, each["name"], each["phase"], each.get("instance", {})


def replaces_whole(target: Target, defaults: TargetDefaults) -> bool:
    """Return whether each build of a target replaces all rows of its table."""
    return isinstance(target, WritingTarget) and not target.partition and target.kept_rows(defaults) is None


def _has_table(resource: Resource) -> bool:
    """Return whether the log of a Delta table is in a folder on this machine."""
    folder = local_path(resource.name) if resource.category == "file" else None
    return folder is not None and (folder / "_delta_log").is_dir()


def lost_taints(project: str, run_id: str, step: Step) -> tuple[Put, ...]:
    """Return the taints of what was in a table that a step has made anew, emptied or removed."""
    if step.warning is None or step.warning.code not in (LOST_ROWS, REMOVED_ROWS):
        return ()
    details = step.warning.details
    reason, lost_in = f"{details['reason']} in run {run_id}", None if details["is_older"] else run_id
    return tuple(
        TargetPhase(project, name, Phase.BUILD.value, parameters).tainted(
            reason,
            lost_in=None if is_part else lost_in,  # what is left of it is there
            kept=None if kept is None else f"{reason}, and {kept}",
        )
        for name, parameters, kept, is_part in details["lost"]
    )
