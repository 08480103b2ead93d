"""What the runs of a project have built, as the history of runs tells it."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, TypeAlias

from lakewright.plan.phase import Phase
from lakewright.run.former_names import FormerNames
from lakewright.run.leftovers import is_built, is_entry_undone
from lakewright.run.outputs import written_by
from lakewright.run.table_marks import TableLook, TableMark, look_at

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.journal import Journal
    from lakewright.plan.resource import Resource
    from lakewright.spec.models.job import Job
    from lakewright.spec.project import Project

__all__ = ["BuildHistory", "Instance", "Key"]

FEW, RUNS = 20, 1000
"""Numbers of last runs: of the job, in which a table is looked for at all; of the project, for all builds."""

_CLEANUP = (Phase.TRUNCATE.value, Phase.DESTROY.value)

Key: TypeAlias = tuple[tuple[str, str], ...]
"""The sorted parameters of an instance."""

Instance: TypeAlias = tuple[str, Key]
"""The name of a target, and the sorted parameters of an instance."""

Step: TypeAlias = "tuple[Job, str, str, Mapping[str, str], TableMark | None]"
"""A step that has built or emptied something: its job, target, phase, the parameters of its instance, and the
state in which it has left its table."""

Replaces: TypeAlias = Callable[["Job", str, Mapping[str, str]], bool]
"""Returns whether an instance of a target of a job replaces all that was where it writes."""

_PLACES = ("location", "table")
"""Entries of a relation that say where its rows are."""


@dataclass(frozen=True, slots=True)
class BuildHistory:
    """What was built by the runs of a job, and into which places by those of all jobs of its project.

    What the journal has is read once.
    """

    project: Project
    lake: Lake
    journal: Journal
    job: Job
    _seen: list[Step] = field(default_factory=list, init=False)
    _reading: list[Iterator[Step]] = field(default_factory=list, init=False)
    _last: list[Mapping[str, Any]] = field(default_factory=list, init=False)
    _places: dict[tuple[str, str, str, Key], frozenset[Resource]] = field(default_factory=dict, init=False)
    _builds: dict[str, Mapping[Key, Mapping[str, Any]]] = field(default_factory=dict, init=False)
    _looks: dict[tuple[str, frozenset[Resource]], TableLook | None] = field(default_factory=dict, init=False)

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
        for job, name, phase, parameters, _ in self._steps():
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

    def standing_of_others(
        self, target: str, places: frozenset[Resource], replaces: Replaces
    ) -> dict[Instance, tuple[Job, bool]]:
        """Return what others than a target have built into places, and nothing has replaced or emptied since.

        Each has its job, and whether only a part of its rows is there. The last builds come first. The
        history is read only if other targets are declared to write there.

        Args:
            target: The target.
            places: The places.
            replaces: Returns whether a build replaces all that was where it writes.
        """
        found: dict[Instance, tuple[Job, bool]] = {}
        gone: set[Resource] = set()
        for job, name, phase, parameters, _ in self._steps() if self._sharers(target) else ():
            if all(any(one.contains(each) for one in gone) for each in places):
                break
            written = self._written(job, name, parameters, phase)
            if not any(one.intersects(each) for one in written for each in places):
                continue
            is_there = not all(any(one.contains(each) for one in gone) for each in written)
            if phase not in _CLEANUP and is_there and name != target:
                is_whole = all(any(each.contains(one) for each in places) for one in written)
                key = (name, tuple(sorted(parameters.items())))
                found.setdefault(key, (job, not is_whole))
            if phase in _CLEANUP or replaces(job, name, parameters):
                gone |= written
        return found

    def _sharers(self, target: str) -> frozenset[str]:
        """Return the other targets whose relation is the same, or is declared to be at the same place."""
        places = {name: self._place_of(name) for name in self.project.targets}
        own = places.get(target)
        return frozenset(name for name, each in places.items() if name != target and own and each == own)

    def _place_of(self, target: str) -> str | None:
        """Return where a target's relation is, as it is declared; its name if it names no place."""
        named = self.project.targets[target].raw.get("relation")
        relation = self.project.relations.get(named) if isinstance(named, str) else None
        declared = named if relation is None else relation.raw
        if not isinstance(declared, Mapping):
            return None if named is None else str(named)
        place = str(next((declared[each] for each in _PLACES if each in declared), named))
        return posixpath.normpath(place) if "location" in declared and "://" not in place else place

    def _written(
        self, job: Job, name: str, parameters: Mapping[str, str], phase: str = Phase.BUILD.value
    ) -> frozenset[Resource]:
        """Return what an instance has written or emptied; each answer is looked up once."""
        key = (job.name, name, phase, tuple(sorted(parameters.items())))
        if key not in self._places:
            self._places[key] = written_by(self.project, self.lake, job, name, parameters, phase=Phase(phase))
        return self._places[key]

    def _steps(self) -> Iterator[Step]:
        """Yield the steps of the history that have built or emptied something, the last one first.

        They are read as far as somebody asks for them, once.
        """
        if not self._reading:
            self._reading.append(self._read_steps())
        position = 0
        while position < len(self._seen) or self._seen_next():
            yield self._seen[position]
            position += 1

    def _seen_next(self) -> bool:
        """Read one more step; return whether there is one."""
        step = next(self._reading[0], None)
        if step is not None:
            self._seen.append(step)
        return step is not None

    def _read_steps(self) -> Iterator[Step]:
        names = FormerNames(self.project, self.lake, self.journal)
        for run in islice(self.journal.runs(project=self.project.name), RUNS):
            job = self.project.jobs.get(run.job)
            entries = [] if job is None else list(names.entries(run))
            for each in reversed(entries):
                is_emptied = each["phase"] in _CLEANUP and not is_entry_undone(each)
                if job is not None and (is_built(each) or is_emptied):
                    mark = TableMark.from_entry(each)
                    yield job, each["name"], each["phase"], each.get("instance", {}), mark

    def look(self, name: str, places: Collection[Resource]) -> TableLook | None:
        """Return the table that a target writes, which is looked at once; None if none is on this machine."""
        key = (name, frozenset(each.whole for each in places))
        if key not in self._looks:
            self._looks[key] = look_at(self.lake, key[1], partial(self._marks, name))
        return self._looks[key]

    def _marks(self, name: str) -> Iterator[TableMark]:
        """Yield the marks of the last builds of a target."""
        yield from filter(None, map(TableMark.from_entry, self.last_builds(name).values()))

    def may_hold_former_rows(self, name: str, look: TableLook) -> bool:
        """Return whether a table may hold rows of a target that runs have removed since its present state.

        Nobody knows which rows another table holds; and an older copy holds what was emptied after it.
        """
        if look.is_unknown:
            return True
        for job, target, phase, parameters, mark in self._steps():
            if phase in _CLEANUP:
                if any(each.name == look.place for each in self._written(job, target, parameters, phase)):
                    return True
            elif target == name and mark is not None and look.mark.comes_after(mark):
                return False
        return False

    def lacked_builds(self, name: str, look: TableLook) -> list[Key]:
        """Return the instances of a target whose last builds its table does not have, newest first."""

        def is_lacked(built: tuple[Key, Mapping[str, Any]]) -> bool:
            written = TableMark.from_entry(built[1])
            return written is not None and not look.mark.comes_after(written)

        return [key for key, _ in takewhile(is_lacked, self.last_builds(name).items())]
