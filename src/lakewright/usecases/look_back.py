"""Look back: what one slice changed in a table, and the life of one record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.app import App
from lakewright.errors import TargetError, UsageError
from lakewright.lake.commit import Commit, read_commits
from lakewright.lake.observation import observe_table, read_table
from lakewright.slices.application import application_of
from lakewright.slices.applied import AppliedSlice, slices_in
from lakewright.slices.rewind.known_slices import name_of
from lakewright.spec.models.entity import Entity, Strategy
from lakewright.spec.suggestions import hint
from lakewright.transform.sql import name_sql, text_sql
from lakewright.transform.system_columns import SystemColumns
from lakewright.usecases.query import first_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["RecordLife", "RecordVersion", "RowChange", "SliceChanges", "record_life", "slice_changes"]

VERSIONS = 20
"""Versions of a table that one query reads: each costs about 0.2 s of planning."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """What a slice did to one record.

    Attributes:
        key: The values of the business key.
        change: `inserted`, `updated` or `deleted`.
        before: The values before; of an update only those that changed. None for an insert.
        after: The values after; None for a delete.
    """

    key: Mapping[str, Any]
    change: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class SliceChanges:
    """What one slice changed in its entity's table.

    Attributes:
        version: The version of the table that its commit made.
        run_id: The run that processed it; None if the commit doesn't say.
        together: Other slices in the same commit: what they changed is among the changes.
        counts: Number of records by change.
        rows: Some of the records, by key.
    """

    entity: str
    slice: str
    item_id: str
    version: int
    run_id: str | None
    together: tuple[str, ...]
    counts: Mapping[str, int]
    rows: tuple[RowChange, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the document that `history diff` prints."""
        return {
            "entity": self.entity,
            "slice": self.slice,
            "item_id": self.item_id,
            "version": self.version,
            "run_id": self.run_id,
            "together": list(self.together),
            "counts": dict(self.counts),
            "rows": [
                {
                    "key": dict(row.key),
                    "change": row.change,
                    "before": None if row.before is None else dict(row.before),
                    "after": None if row.after is None else dict(row.after),
                }
                for row in self.rows
            ],
        }


@dataclass(frozen=True, slots=True)
class RecordVersion:
    """One version of a record.

    Attributes:
        since: From when it holds: with history its `ValidFrom`, otherwise the time of the commit.
        until: Until when; None for the present one.
        is_deleted: Whether the record is marked as deleted.
        values: The columns of the source.
        slice: The slice that it comes from.
        run_id: The run that processed that slice; None if the table's log doesn't say.
        version: The version of the table; None if the log doesn't say.
    """

    since: str | None
    until: str | None
    is_deleted: bool
    values: Mapping[str, Any]
    slice: str | None
    run_id: str | None
    version: int | None


@dataclass(frozen=True, slots=True)
class RecordLife:
    """All that a table knows of one record.

    Attributes:
        key: The values of the business key.
        versions: Oldest first.
        reaches_back_to: The oldest version of the table that could be read; None if its rows tell all.
    """

    entity: str
    key: Mapping[str, str]
    versions: tuple[RecordVersion, ...]
    reaches_back_to: int | None

    def as_json(self) -> dict[str, Any]:
        """Return the document that `history row` prints."""
        names = ("since", "until", "is_deleted", "values", "slice", "run_id", "version")
        return {
            "entity": self.entity,
            "key": dict(self.key),
            "versions": [{name: getattr(each, name) for name in names} for each in self.versions],
            "reaches_back_to": self.reaches_back_to,
        }


def slice_changes(app: App, entity_name: str, slice_name: str, *, limit: int) -> SliceChanges:
    """Return what a slice changed: the records of the table before and after its commit, compared.

    With history, the open versions are compared.

    Raises:
        SpecError: There is no such entity.
        UsageError: The table's log has no commit of such a slice, or the entity has no business key.
        TargetError: The files of these versions are gone.
    """
    table = _Table.of(app, entity_name)
    if not table.entity.business_keys:
        raise UsageError(
            f"{table.entity.name} has no business key, so its records can't be followed",
            remedy="Compare two versions of the table with `lakewright sql --as-of`.",
        )
    commit, applied = table.commit_of(slice_name)
    others = tuple(name_of(each) for each in slices_in(commit, table.app_id) if each != applied)
    changed = table.changed(commit.version)
    with _readable(table.entity, commit.version - 1):
        counts = {
            str(row["change"]): int(row["n"])
            for row in changed.groupBy("change").count().toDF("change", "n").collect()
        }
        rows = changed.orderBy("key").limit(limit).collect()
    return SliceChanges(
        entity=table.entity.name,
        slice=slice_name,
        item_id=applied.item_id,
        version=commit.version,
        run_id=commit.content.get("run"),
        together=others,
        counts=counts,
        rows=tuple(_change(row.asDict()) for row in rows),
    )


def record_life(app: App, entity_name: str, key: Sequence[str]) -> RecordLife:
    """Return every version of a record that the table knows, with the slice and the run that made it.

    With history, these are the rows of the record. Otherwise the table's versions are compared, as far as
    their files are there.

    Args:
        app: The project.
        entity_name: Name or id of the entity.
        key: The values of the business key, as text, in the order of the declaration.

    Raises:
        SpecError: There is no such entity.
        UsageError: The entity has no business key, or the key has another number of values.
        TargetError: There is no table.
    """
    table = _Table.of(app, entity_name)
    columns = table.keys
    if not columns or len(columns) != len(key):
        wanted = " ".join(name.upper() for name in columns) or "no key"
        raise UsageError(
            f"the business key of {table.entity.name} is {wanted}, not {len(key)} values",
            remedy=f"Write `lakewright history row {table.entity.name} {wanted}`." if columns else None,
        )
    named = dict(zip(columns, key, strict=True))
    where = " AND ".join(f"cast({name_sql(n)} AS string) = {text_sql(v)}" for n, v in named.items())
    if table.entity.strategy is Strategy.HISTORIC:
        return RecordLife(table.entity.name, named, tuple(table.history(where)), None)
    versions, oldest = table.walk(where)
    return RecordLife(table.entity.name, named, versions, oldest)


@dataclass(frozen=True)
class _Table:
    """An entity's table with its log."""

    app: App
    entity: Entity
    system: SystemColumns
    session: SparkSession
    log: tuple[Commit, ...]

    @classmethod
    def of(cls, app: App, name: str) -> _Table:
        entity = app.project.entity(name)
        address = entity.places(app.project.lake).silver
        if not observe_table(app.lake, address).exists:
            raise TargetError(
                f"entity {entity.name!r} has no silver table yet",
                remedy="Run a job with its target; the first slice creates the table.",
            )
        system = SystemColumns(app.project.lake.systemfield_prefix, entity.destination)
        return cls(app, entity, system, app.lake.new_session(), read_commits(app.lake, address))

    @property
    def app_id(self) -> str:
        return str(application_of(self.app.project.name, self.entity))

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(column.silver for column in self.entity.columns if column.is_business_key)

    def read(self, version: int | None = None) -> DataFrame:
        return read_table(self.session, self.entity.places(self.app.project.lake).silver, version)

    def commit_of(self, name: str) -> tuple[Commit, AppliedSlice]:
        """Return the last commit of a slice."""
        known: dict[str, tuple[Commit, AppliedSlice]] = {}
        for commit in self.log:
            for applied in slices_in(commit, self.app_id):
                known[name_of(applied)] = (commit, applied)
        if name not in known:
            raise UsageError(
                f"the log of {self.entity.name} has no commit of a slice {name!r}",
                remedy=hint(name, known) if known else "The log no longer reaches back so far.",
            )
        return known[name]

    def values(self, frame: DataFrame) -> str:
        """Return the source's columns of a frame as one JSON text in SQL."""
        own = [name for name in frame.columns if name.lower() not in self.system.all]
        pairs = ", ".join(f"{text_sql(name)}, {name_sql(name)}" for name in own)
        return f"to_json(named_struct({pairs}), map('ignoreNullFields', 'false'))"

    def changed(self, version: int) -> DataFrame:
        """Return `change`, `key`, `before` and `after` of the records that a version changed."""
        has_history = self.entity.strategy is Strategy.HISTORIC
        live = self.system.current_sql(has_history=has_history)
        key, digest = name_sql(self.system.key), name_sql(self.system.hash)

        def side(number: int, name: str) -> DataFrame:
            frame = self.read(max(number, 0)).where(live if number >= 0 else "false")
            pairs = ", ".join(f"{text_sql(n)}, {name_sql(n)}" for n in self.keys)
            return frame.selectExpr(
                f"{key} AS {name}_pk",
                f"{digest} AS {name}_hash",
                f"{self.values(frame)} AS {name}",
                f"to_json(named_struct({pairs})) AS {name}_key",
            )

        before, after = side(version - 1, "before"), side(version, "after")
        joined = before.join(after, before["before_pk"] == after["after_pk"], "full_outer")
        return joined.where("not (before_pk <=> after_pk and before_hash <=> after_hash)").selectExpr(
            "CASE WHEN before_pk IS NULL THEN 'inserted' WHEN after_pk IS NULL THEN 'deleted' "
            "ELSE 'updated' END AS change",
            "coalesce(after_key, before_key) AS key",
            "before",
            "after",
        )

    def history(self, where: str) -> Iterator[RecordVersion]:
        """Yield the versions of a record of an entity with history."""
        frame = self.read()
        start, end, _ = map(name_sql, self.system.temporal)
        flag, file = name_sql(self.system.deleted), name_sql(self.system.filename)
        found = frame.where(where).selectExpr(
            _instant(start, "since"),
            _instant(end, "until"),
            f"{flag} AS deleted",
            f"{file} AS file",
            f"{self.values(frame)} AS v",
        )
        for row in sorted(found.collect(), key=lambda row: str(row["since"])):
            yield self._version(row.asDict())

    def walk(self, where: str) -> tuple[tuple[RecordVersion, ...], int | None]:
        """Return the states that a record had, and the oldest version that could be read."""
        versions = [commit.version for commit in self.log]
        states: dict[int, dict[str, Any] | None] = {}
        for start in range(len(versions), 0, -VERSIONS):
            some = versions[max(start - VERSIONS, 0) : start]
            found = self._states(some, where)
            states |= found
            if len(found) < len(some):
                break
        times = {commit.version: commit for commit in self.log}
        lives: list[dict[str, Any]] = []
        for version in sorted(states):
            state, at = states[version], times[version].at
            since = None if at is None else at.isoformat()
            last = lives[-1] if lives else None
            if state is not None and last is not None and last["until"] is None and _same(last, state):
                continue
            if last is not None and last["until"] is None:
                last["until"] = since
            if state is not None:
                lives.append({**state, "since": since, "until": None, "at_version": version})
        return tuple(self._version(life) for life in lives), min(states, default=None)

    def _states(self, versions: Sequence[int], where: str) -> dict[int, dict[str, Any] | None]:
        """Return the record in each of these versions, or None; versions whose files are gone are left out."""
        try:
            return self._read_states(versions, where)
        except _errors() as error:
            if len(versions) == 1:
                if not _is_gone(error):
                    raise
                return {}
        found: dict[int, dict[str, Any] | None] = {}
        for version in reversed(versions):
            one = self._states([version], where)
            if not one:
                break
            found |= one
        return found

    def _read_states(self, versions: Sequence[int], where: str) -> dict[int, dict[str, Any] | None]:
        flag, file = name_sql(self.system.deleted), name_sql(self.system.filename)
        frames = []
        for version in versions:
            frame = self.read(version).where(where)
            frames.append(
                frame.selectExpr(
                    f"{version} AS n", f"{flag} AS deleted", f"{file} AS file", f"{self.values(frame)} AS v"
                )
            )
        union = frames[0]
        for frame in frames[1:]:
            union = union.unionAll(frame)
        rows = {int(row["n"]): row.asDict() for row in union.collect()}
        return {version: rows.get(version) for version in versions}

    def _version(self, row: Mapping[str, Any]) -> RecordVersion:
        commit = self._commit_of_file(row["file"], row.get("at_version"))
        return RecordVersion(
            since=row["since"],
            until=row["until"],
            is_deleted=bool(row["deleted"]),
            values=json.loads(row["v"]),
            slice=row["file"],
            run_id=None if commit is None else commit.content.get("run"),
            version=row.get("at_version") if commit is None else commit.version,
        )

    def _commit_of_file(self, name: str | None, version: int | None) -> Commit | None:
        if version is not None:
            return next((commit for commit in self.log if commit.version == version), None)
        found = None
        for commit in self.log:
            if any(name_of(each) == name for each in slices_in(commit, self.app_id)):
                found = commit
        return found


def _instant(column: str, name: str) -> str:
    return f"date_format({column}, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'\") AS {name}"


def _same(life: Mapping[str, Any], state: Mapping[str, Any]) -> bool:
    return all(life[name] == state[name] for name in ("v", "deleted"))


def _change(row: Mapping[str, Any]) -> RowChange:
    key, before, after = (None if row[n] is None else json.loads(row[n]) for n in ("key", "before", "after"))
    if before is not None and after is not None:
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        before, after = ({name: side.get(name) for name in names} for side in (before, after))
    return RowChange(key or {}, row["change"], before, after)


def _errors() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JJavaError)


def _is_gone(error: Exception) -> bool:
    text = str(error)
    return any(sign in text for sign in ("FileNotFound", "does not exist", "DELTA_VERSION", "NO_RECREATABLE"))


@contextmanager
def _readable(entity: Entity, version: int) -> Iterator[None]:
    """Raise errors about files that are gone as errors of the table."""
    try:
        yield
    except _errors() as error:
        if not _is_gone(error):
            raise
        raise TargetError(
            f"version {version} of {entity.name} can't be read: {first_line(error)}",
            remedy="VACUUM removes files of old versions; `undo_window` of the entity keeps them longer.",
        ) from error
