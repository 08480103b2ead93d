"""In which versions of a silver table the rows of its slices have changed, for what is built from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lakewright.lake.commit import has_changed_rows, replaces_all, restored_version
from lakewright.slices.other_runs import entity_targets, instance_taking

if TYPE_CHECKING:
    from lakewright.lake.commit import Commit
    from lakewright.slices.chain import AppliedSlice, SliceChain
    from lakewright.spec.models.job import Job
    from lakewright.spec.project import Project

__all__ = ["SilverChanges"]


@dataclass
class SilverChanges:
    """The changes of the table of an entity.

    Attributes:
        chain: The entity's slices.
    """

    project: Project
    chain: SliceChain

    def __post_init__(self) -> None:
        self._by_job: dict[str, _Instances] = {}

    @cached_property
    def former_ids(self) -> frozenset[str]:
        """The identities that the table had before it was replaced by replays."""
        rewinds = (commit.content.get("rewind") or {} for commit in self.chain.log)
        return frozenset(each["replaces"] for each in rewinds if each.get("replaces"))

    @cached_property
    def _changes(self) -> tuple[int, Mapping[str, int]]:
        """The last version that may have changed any row, and the last one of each slice."""
        whole, of_slices = -1, dict[str, int]()
        logged = self.chain.logged
        for commit, slices in logged:
            names = self._names(commit, slices, logged)
            if names is None:
                whole = commit.version
            else:
                of_slices |= dict.fromkeys(names, commit.version)
        return whole, of_slices

    def _names(
        self,
        commit: Commit,
        slices: tuple[AppliedSlice, ...],
        logged: tuple[tuple[Commit, tuple[AppliedSlice, ...]], ...],
    ) -> set[str] | None:
        """Return the slices whose rows a commit has changed; None if it may have changed any."""
        own = {each.name for each in slices}
        rewind = commit.content.get("rewind")
        if rewind is None and commit.operation != "RESTORE":
            if replaces_all(commit) or (not own and has_changed_rows(commit)):
                return None
            return own
        base = restored_version(commit, self.chain.log) if rewind is None else rewind.get("base")
        if base is None:
            return None
        for each, undone in logged:
            if int(base) < each.version < commit.version:
                if has_changed_rows(each) and (not undone or replaces_all(each)):
                    return None
                own |= {one.name for one in undone}
        return own

    def last_change(self, job: Job, instance: Mapping[str, str]) -> int:
        """Return the last version in which rows have changed that concern an instance of a job.

        Rows of slices that belong to other instances don't; where nothing tells, any change does.
        """
        whole, of_slices = self._changes
        return max(whole, self._instances(job).last_change(instance, of_slices))

    def slices_of(
        self, job: Job, instance: Mapping[str, str], names: frozenset[str]
    ) -> frozenset[str] | None:
        """Return which slices concern an instance of a job; None if all do."""
        if not job.parameters:
            return None
        return self._instances(job).of(instance, names)

    def _instances(self, job: Job) -> _Instances:
        if job.name not in self._by_job:
            entity = self.chain.entity.called
            declared = next((raw for _, raw in entity_targets(self.project, entity, job.targets)), {})
            self._by_job[job.name] = _Instances(self.project, job, declared)
        return self._by_job[job.name]


class _Instances:
    """Which instance of a job each slice belongs to; each is asked for once."""

    def __init__(self, project: Project, job: Job, declared: Mapping[str, object]) -> None:
        self._project, self._job, self._declared = project, job, declared
        self._keys: dict[str, Mapping[str, str] | None] = {}
        self._latest: dict[frozenset[tuple[str, str]], int] | None = None
        self._unknown = -1

    def _key(self, name: str) -> Mapping[str, str] | None:
        if name not in self._keys:
            self._keys[name] = instance_taking(self._project, self._job, self._declared, name)
        return self._keys[name]

    def last_change(self, instance: Mapping[str, str], of_slices: Mapping[str, int]) -> int:
        """Return the last version in which slices of an instance have changed."""
        if not self._job.parameters:
            return max(of_slices.values(), default=-1)
        if self._latest is None:
            self._latest = {}
            for name, version in of_slices.items():
                key = self._key(name)
                if key is None:
                    self._unknown = max(self._unknown, version)
                else:
                    pairs = frozenset(key.items())
                    self._latest[pairs] = max(version, self._latest.get(pairs, -1))
        sets = {frozenset(name for name, _ in pairs) for pairs in self._latest}
        own = (frozenset((n, instance[n]) for n in names if n in instance) for names in sets)
        return max(self._unknown, max((self._latest.get(each, -1) for each in own), default=-1))

    def of(self, instance: Mapping[str, str], names: frozenset[str]) -> frozenset[str]:
        """Return those of some slices that concern an instance."""
        keys = ((name, self._key(name)) for name in names)
        return frozenset(name for name, key in keys if key is None or key.items() <= instance.items())
