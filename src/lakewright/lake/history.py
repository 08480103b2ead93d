"""What has changed: since a version, by a table's log, and since a place was marked.

The log is read once; each answer then takes the same time, however long it is. The mark of a place is a short
text that is another one once the rows there may be others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, TypeAlias

from lakewright.errors import LakewrightError
from lakewright.lake.commit import (
    EMPTIED,
    Commit,
    LandedCommit,
    commits_since,
    empties,
    going_back,
    has_changed_rows,
    is_own,
    read_commits,
    replaces_all,
    time_of_restore,
)
from lakewright.lake.delta_log import DECLARED_LENGTH
from lakewright.lake.files import digest_of_listing, files_at, is_pattern
from lakewright.lake.observation import last_commit_number, log_stamp, observe_table, open_log
from lakewright.lake.paths import is_stored, local_path
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.plan.resource import Resource

MOST_COMMITS = 100
"""Commits of others that are looked into for the partitions that they have changed."""

MOST_BYTES = 16_000_000
"""The largest size of such a commit."""

EXACT = frozenset({"string", "byte", "short", "integer", "long", "date"})
"""Types of which the log has values in the form in which they are given."""


Partition: TypeAlias = Mapping[str, str]
"""Values of partition columns, by their names in lower case; empty for the whole table."""


ABSENT = ""
"""The mark of a place at which nothing is."""

UNSEEN = "?"
"""The mark of a place that can't be looked at without Spark, such as a table of a database."""


BEFORE_ALL = -2
"""A version before that of a commit which the log does not have any more, which is -1."""


class _Latest:
    """The latest version in which each of several partitions was written as a whole."""

    def __init__(self, commits: Iterable[tuple[int, Partition]]) -> None:
        self._by_columns: dict[tuple[str, ...], dict[tuple[str, ...], int]] = {}
        for version, values in commits:
            columns = tuple(sorted(values))
            parts = self._by_columns.setdefault(columns, {})
            key = tuple(values[name] for name in columns)
            parts[key] = max(version, parts.get(key, -1))

    def containing(self, partition: Partition) -> int:
        """Return the latest version in which a partition, or one that contains it, was written; else -1."""
        return max(
            (
                parts.get(tuple(partition[name] for name in columns), -1)
                for columns, parts in self._by_columns.items()
                if partition.keys() >= set(columns)
            ),
            default=-1,
        )

    def touching(self, partition: Partition) -> int:
        """Return the latest version in which a partition that overlaps this one was written; else -1."""
        wider = (
            version
            for columns, parts in self._by_columns.items()
            if not partition.keys() >= set(columns)
            for values, version in parts.items()
            if all(partition.get(name, value) == value for name, value in zip(columns, values, strict=True))
        )
        return max(self.containing(partition), *wider, -1)


@dataclass(frozen=True)
class TableHistory:
    """A table and its log.

    Attributes:
        id: The identity of the table; another table in its place has another one.
        version: The version of the table.
        log: The commits that its log still has, oldest first.
        touched: Returns the partitions in which a commit has added or removed files; None if unknown.
    """

    id: str
    version: int
    log: tuple[Commit, ...]
    touched: Callable[[int], Sequence[Partition] | None] = lambda _: None

    @property
    def mark(self) -> str:
        """The present state as text."""
        return f"{self.id}@{self.version}"

    @cached_property
    def standing(self) -> tuple[Commit, ...]:
        """The commits on which its last version builds, newest first."""
        return tuple(commit for commit, _ in going_back(self.log, self.log))

    @cached_property
    def _floor(self) -> int:
        """The last version before these on which they build, too; -1 if there is none."""
        oldest, before = next(reversed(list(going_back(self.log, self.log))), (None, None))
        if before is not None or oldest is None:
            return -1 if before is None else before
        # To which version an unreadable RESTORE went back, nobody knows; a time is before the log.
        return oldest.version - 1 if time_of_restore(oldest) is None else BEFORE_ALL

    @cached_property
    def _versions(self) -> frozenset[int]:
        return frozenset(commit.version for commit in self.standing)

    @cached_property
    def _cleared(self) -> int:
        return max((each.version for each in self.standing if replaces_all(each)), default=-1)

    @property
    def is_filled(self) -> bool:
        """Whether a commit has written rows since all were removed, as far as the log shows."""
        return self._floor >= 0 > self._cleared or any(
            each.version >= self._cleared and has_changed_rows(each) and not empties(each)
            for each in self.standing
            if each.operation != "RESTORE"
        )

    @cached_property
    def _emptied(self) -> _Latest:
        return _Latest(_in_partitions(self.standing))

    def holds(self, version: int, partition: Partition) -> bool:
        """Return whether what a version wrote into a partition is there, and was not replaced since."""
        is_built_on = version in self._versions or version <= self._floor
        is_replaced = self._cleared > version or self._emptied.containing(partition) > version
        return is_built_on and not is_replaced

    def version_of_append(self, identity: str) -> int | None:
        """Return the version in which an append was made whose rows are there; None if none was."""
        own = (each.version for each in self.standing if each.content.get("app") == identity)
        return next((version for version in own if self.holds(version, {})), None)

    @cached_property
    def _foreign(self) -> tuple[int, ...]:
        return tuple(
            each.version
            for each in self.standing
            if has_changed_rows(each) and each.operation != "RESTORE" and not is_own(each)
        )

    def foreign_since(self, version: int, own: frozenset[int] = frozenset()) -> int | None:
        """Return the last version after one in which another writer has changed rows; None without one.

        Args:
            version: The version.
            own: Versions that are known to be Lakewright's, although nothing in them says so.
        """
        return next((each for each in self._foreign if each > version and each not in own), None)

    @cached_property
    def _changed(self) -> tuple[tuple[int, ...], _Latest]:
        """The versions that may have changed rows anywhere, and the last one of each partition."""
        changing = [each for each in self.log if has_changed_rows(each)]
        parts = dict(_in_partitions(changing))
        whole = tuple(each.version for each in changing if each.version not in parts)
        return whole, _Latest(parts.items())

    def has_changed(self, version: int, partition: Partition) -> bool:
        """Return whether rows of a partition may have changed since a version."""
        whole, parts = self._changed
        if version > self.version or parts.touching(partition) > version:
            return True
        since = [each for each in whole if each > version]
        is_known = bool(partition) and len(since) <= MOST_COMMITS
        return any(self._is_touched(each, partition) for each in since) if is_known else bool(since)

    def _is_touched(self, version: int, partition: Partition) -> bool:
        """Return whether a commit may have changed rows of a partition."""
        touched = self.touched(version)
        return touched is None or any(
            all(each.get(name, value) == value for name, value in partition.items()) for each in touched
        )


class TableHistories:
    """The histories of tables, each read once. Of a table that can't be read nothing is known."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._read: dict[str, TableHistory | None] = {}

    def of(self, place: Resource) -> TableHistory | None:
        """Return the history of the table in a folder; None if it is unknown."""
        if place.category != "file":
            return None
        if place.name not in self._read:
            self._read[place.name] = None
            with suppress(LakewrightError):  # its mark says that it was not seen
                self._read[place.name] = read_table_history(self._lake, place.name)
        return self._read[place.name]


def read_table_history(lake: Lake, location: str) -> TableHistory | None:
    """Return the history of the table in a folder; None if there is none, or only Spark can read it.

    Raises:
        LakewrightError: The log can't be read.
    """
    address = Address(location=location)
    table = open_log(lake, address).table if may_be_table(location) else None
    if table is None:
        return None
    exact = {
        field.name.lower()
        for field in table.schema().fields
        if str(getattr(field.type, "type", "")) in EXACT and DECLARED_LENGTH not in field.metadata
    }
    is_exact = exact >= {name.lower() for name in table.metadata().partition_columns}
    touched = cache(partial(_touched, lake, location)) if is_exact else lambda _: None
    return TableHistory(str(table.metadata().id), table.version(), read_commits(lake, address), touched)


def _touched(lake: Lake, location: str, version: int) -> Sequence[Partition] | None:
    """Return the partitions in which a commit has added or removed files; None if it does not name them."""
    place = f"{location}/_delta_log/{version:020}.json"
    found: list[Partition] = []
    try:
        text = files_at(place, lake).begin(place, MOST_BYTES)
        for action in map(json.loads, text.splitlines() if len(text) < MOST_BYTES else ['{"metaData": {}}']):
            values = [action[kind].get("partitionValues") for kind in ("add", "remove") if kind in action]
            if None in values or "metaData" in action:  # columns may be others
                return None
            found += ({name.lower(): str(text) for name, text in each.items()} for each in values)
    except (LakewrightError, OSError, ValueError):
        return None
    return found


def _in_partitions(commits: Iterable[Commit]) -> Iterator[tuple[int, Partition]]:
    """Yield the versions in which Lakewright emptied, or replaced, the rows of a partition, with that."""
    for each in commits:
        emptied = each.content.get(EMPTIED)
        if isinstance(emptied, Mapping) and emptied:
            yield each.version, {str(name).lower(): str(value) for name, value in emptied.items()}


@dataclass(frozen=True, slots=True)
class EffectiveCommit:
    """The last commit of an application.

    Attributes:
        number: Its number; 0 if there is none. Delta skips a commit with a number that is not greater.
        commit: The commit, unless a later one has reverted it or removed its rows as a whole.
    """

    number: int
    commit: LandedCommit | None


def find_effective(
    lake: Lake, address: Address, app_id: str, partition: Mapping[str, str] | None = None
) -> EffectiveCommit:
    """Return the last commit of an application, and whether the table's last version builds on it.

    A single DELETE of some rows leaves the commit as it is: whoever deletes rows means it.

    Args:
        lake: The lake.
        address: The table.
        app_id: The application.
        partition: The partition into which it has written, if it is one.
    """
    number = last_commit_number(lake, address, app_id)
    if number is None:
        return EffectiveCommit(0, None)
    since = commits_since(lake, address, lambda each: each.is_numbered(app_id, number))
    log = read_commits(lake, address) if since is None else (since.start, *since.commits)
    found = LandedCommit(None, {}) if since is None else LandedCommit(log[0].version, log[0].content)
    history = TableHistory("", log[-1].version if log else -1, log)
    values = {name.lower(): value for name, value in (partition or {}).items()}
    is_there = history.holds(-1 if found.version is None else found.version, values)
    return EffectiveCommit(number, found if is_there else None)


def mark_of(lake: Lake, place: Resource, *, with_spark: bool = False) -> str:
    """Return the mark of a place: the identity and version of a table, or a digest of names, sizes and times.

    Args:
        lake: The lake.
        place: The place.
        with_spark: Whether Spark is asked for what can't be looked at without it.
    """
    is_seen = place.category == "file" and (is_stored(place.name) or local_path(place.name) is not None)
    try:
        if place.category == "table" and with_spark:
            version = observe_table(lake, Address(name=place.name)).version
            return UNSEEN if version is None else f"{place.name}@{version}"
        if not (is_seen or (with_spark and place.category == "file")):
            return UNSEEN
        if may_be_table(place.name):
            table = open_log(lake, Address(location=place.name)).table
            if table is not None:
                return f"{table.metadata().id}@{table.version()}"
        digest = digest_of_listing(lake, [place.name])
        return ABSENT if digest is None else digest[:16]
    except (LakewrightError, OSError):
        return UNSEEN


def stamp_of(lake: Lake, place: Resource) -> str:
    """Return a text that differs whenever the mark of a place does; no log on this machine is read for it."""
    if place.category == "file" and local_path(place.name) is not None and may_be_table(place.name):
        stamp = log_stamp(lake, Address(location=place.name))
        if stamp is not None:
            return stamp
    return mark_of(lake, place)


def may_be_table(name: str) -> bool:
    """Return whether a table may be at a place, which is no file and no pattern."""
    local = local_path(name)
    return not is_pattern(name) and (local is None or local.is_dir())


def version_of(mark: str) -> tuple[str, int] | None:
    """Return the identity and the version of a table that a mark is of; None if it is of something else.

    Example:
        >>> version_of("7b0f@12"), version_of("")
        (('7b0f', 12), None)
    """
    name, is_table, version = mark.rpartition("@")
    return (name, int(version)) if is_table else None
