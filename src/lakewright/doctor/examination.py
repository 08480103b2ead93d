"""Examination of an entity's silver table: broken rules, and since when.

Source: `processing-strategies.md`, "Version Lifecycle"; Delta's documentation, "Query an older snapshot of a
table (time travel)".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from lakewright.lake.commit import Commit, read_commits, strict_session
from lakewright.lake.observation import observe_table, read_table
from lakewright.slices.chain import foreign_commits
from lakewright.targets.entity.table_rules import ExaminedTable, Finding, find_violations, has_rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity
    from lakewright.targets.context import Context


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of examining an entity's table.

    Attributes:
        version: The version that was examined; None if there is no table, or its rows have no rules.
        findings: The broken rules.
        since: Rule to the first commit with which it is broken; None if that is not known.
        foreign_commits: Commits of other writers that changed rows.
    """

    version: int | None
    findings: tuple[Finding, ...] = ()
    since: Mapping[str, Commit | None] = field(default_factory=dict)
    foreign_commits: tuple[Commit, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong; commits of other writers alone are not wrong."""
        return not self.findings

    def as_json(self) -> dict[str, Any]:
        """Return the diagnosis as `doctor -o json` prints it."""
        return {
            "version": self.version,
            "findings": [
                {**finding.as_json(), "since": _commit_json(self.since.get(finding.rule))}
                for finding in self.findings
            ],
            "written_by_others": [_commit_json(commit) for commit in self.foreign_commits],
        }


def examine(context: Context, entity: Entity) -> Diagnosis:
    """Return what is wrong with an entity's table; nothing is written."""
    lake = context.workspace.lake
    address = entity.places(lake.settings).silver
    state = observe_table(lake, address)
    if not state.exists:
        return Diagnosis(None)
    log = read_commits(lake, address)
    if not has_rules(lake, entity, state.names):
        return Diagnosis(None, foreign_commits=foreign_commits(log))
    session = strict_session(lake)
    table = ExaminedTable.of(lake, entity, session, state)
    findings = find_violations(table)
    since = _since(lake, table, session, findings, log) if findings else {}
    return Diagnosis(state.version, findings, since, foreign_commits(log))


def _since(
    lake: Lake,
    table: ExaminedTable,
    session: SparkSession,
    findings: tuple[Finding, ...],
    log: tuple[Commit, ...],
) -> dict[str, Commit | None]:
    """Return the first commit with which each rule is broken, by examining earlier versions."""
    from pyspark.errors import PySparkException

    broken, address = [each.rule for each in findings], table.entity.places(lake.settings).silver

    def count_at(version: int) -> Mapping[str, int] | None:
        try:
            frame = read_table(session, address, version)
            if not has_rules(lake, table.entity, frame.columns):
                return {}
            earlier = replace(table, frame=frame)
            return {finding.rule: finding.count for finding in find_violations(earlier, broken)}
        except PySparkException:
            return None

    by_version = {commit.version: commit for commit in log}
    found = first_broken(broken, sorted(by_version), count_at)
    return {rule: None if version is None else by_version[version] for rule, version in found.items()}


def first_broken(
    rules: Iterable[str], versions: Sequence[int], count_at: Callable[[int], Mapping[str, int] | None]
) -> dict[str, int | None]:
    """Return the first version in which each rule is broken; None if that is not known.

    A bisection finds it, which assumes that a broken rule stays broken. Each version is examined at most
    once.

    Args:
        rules: Rules that are broken in the last version.
        versions: Versions of the table, in order.
        count_at: Returns the number of rows that break each rule in a version; None if the version can no
            longer be read.

    Example:
        >>> first_broken(["gap"], [0, 1, 2, 3, 4], lambda version: {"gap": int(version >= 3)})
        {'gap': 3}
    """
    seen = cache(count_at)

    def first(rule: str) -> int | None:
        def is_broken(version: int) -> bool:
            return bool((seen(version) or {}).get(rule))

        found = bisect_left(versions, True, hi=len(versions) - 1, key=is_broken)
        is_known = found == 0 or seen(versions[found - 1]) is not None
        return versions[found] if is_known else None

    return {rule: first(rule) for rule in rules}


def _commit_json(commit: Commit | None) -> dict[str, Any] | None:
    if commit is None:
        return None
    items = [content["item"] for content in commit.items]
    return {
        "version": commit.version,
        "at": commit.at.isoformat() if commit.at else None,
        "operation": commit.operation,
        "item": items[-1] if items else None,
        "items": items,
        "run": commit.content.get("run"),
        "is_own": "app" in commit.content,
    }
