"""The life of one record: every version that its table knows, by which slice, in which run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.commit import Commit, is_gone
from lakewright.lake.spark_errors import spark_errors
from lakewright.notebook import html_table, json_value, values_text
from lakewright.schema.sql import name_sql, text_sql
from lakewright.slices.chain import slices_in
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import counted
from lakewright.strategies.past_load import past_app
from lakewright.strategies.table_properties import HISTORY_PROPERTY
from lakewright.transform.row_values import parse_values
from lakewright.usecases.past_table import PastTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["RecordLife", "RecordVersion", "record_life"]

VERSIONS = 20
"""Versions of a table that one query reads: each costs about 0.2 s of planning."""


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
        origin: `slice`, or `history_from` for a version from before the first slice: `slice` is then the
            export, or the table, that it comes from.
    """

    since: str | None
    until: str | None
    is_deleted: bool
    values: Mapping[str, Any]
    slice: str | None
    run_id: str | None
    version: int | None
    origin: str = "slice"


@dataclass(frozen=True, slots=True, repr=False)
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

    def __repr__(self) -> str:
        return f"<RecordLife {self.entity} {values_text(self.key)}: {counted(len(self.versions), 'version')}>"

    def _repr_html_(self) -> str:
        rows = (
            (
                each.since or "",
                each.until or "",
                "deleted" if each.is_deleted else "",
                values_text({name: value for name, value in each.values.items() if name not in self.key}),
                each.slice or "",
                each.run_id or "",
            )
            for each in self.versions
        )
        back = self.reaches_back_to
        notes = [f"files of versions before {back} are gone, so earlier states are not known"] if back else []
        columns = ("since", "until", "", "values", "slice", "run")
        return html_table(repr(self)[1:-1], columns, rows, notes)

    def as_json(self) -> dict[str, Any]:
        """Return the document that `history row` prints."""
        names = ("since", "until", "is_deleted", "values", "slice", "origin", "run_id", "version")
        return {
            "entity": self.entity,
            "key": dict(self.key),
            "versions": [{name: json_value(getattr(each, name)) for name in names} for each in self.versions],
            "reaches_back_to": self.reaches_back_to,
        }


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
        UsageError: The entity has no business key, the key has another number of values, or one of them is
            none of its column's type.
        TargetError: There is no table.
    """
    table = PastTable.of(app, entity_name)
    columns = table.keys
    if not columns or len(columns) != len(key):
        values = [name.upper() for name in columns]
        wanted = " ".join(values) or "no key"
        raise UsageError(
            f"the business key of {table.entity.called} is {wanted}, not {counted(len(key), 'value')}",
            remedy=Phrase("Write ", Command("history", "row", table.entity.called, *values), ".")
            if columns
            else None,
        )
    named = dict(zip(columns, key, strict=True))
    versions: tuple[RecordVersion, ...]
    oldest: int | None = None
    if table.entity.strategy is Strategy.HISTORIC:
        versions = tuple(_history(table, named))
    else:
        versions, oldest = _walk(table, named)
    if not versions:
        _check_types(table, named)
    return RecordLife(table.entity.called, named, versions, oldest)


def _check_types(table: PastTable, key: Mapping[str, str]) -> None:
    """Raise an error if a value of a business key is none of its column's type, so that no record has it.

    Raises:
        UsageError: With the first such value.
    """
    frame = table.read()
    for name, text in key.items():
        kind = frame.schema[name].dataType
        if not isinstance(kind, _as_text()):
            cast = f"try_cast({text_sql(text)} AS {kind.simpleString()}) AS v"
            row = frame.sparkSession.sql(f"SELECT {cast}").first()
            if row is None or row["v"] is None:
                raise UsageError(
                    f"{text!r} is no value of the business key {name} of type {kind.simpleString()}",
                    remedy="Write the key as the table has it.",
                )


def _as_text() -> tuple[type, ...]:
    """Return the types whose values are compared as texts."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType, VariantType

    return StringType, ArrayType, MapType, StructType, VariantType


def _history(table: PastTable, key: Mapping[str, str]) -> Iterator[RecordVersion]:
    """Yield the versions of a record of an entity with history."""
    frame = table.read()
    start, end, _ = map(name_sql, table.system.temporal)
    flag, file = name_sql(table.system.deleted), name_sql(table.system.filename)
    found = _of_record(frame, key).selectExpr(
        _instant(start, "since"),
        _instant(end, "until"),
        f"{flag} AS deleted",
        f"{file} AS file",
        f"{table.values(frame)} AS v",
    )
    for row in sorted(found.collect(), key=lambda row: str(row["since"])):
        yield _version(table, {**row.asDict(), "types": frame.schema})


def _walk(table: PastTable, key: Mapping[str, str]) -> tuple[tuple[RecordVersion, ...], int | None]:
    """Return the states that a record had, and the oldest version that could be read."""
    versions = [commit.version for commit in table.log]
    states: dict[int, dict[str, Any] | None] = {}
    for start in range(len(versions), 0, -VERSIONS):
        some = versions[max(start - VERSIONS, 0) : start]
        found = _states(table, some, key)
        states |= found
        if len(found) < len(some):
            break
    times = {commit.version: commit for commit in table.log}
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
    return tuple(_version(table, life) for life in lives), min(states, default=None)


def _states(
    table: PastTable, versions: Sequence[int], key: Mapping[str, str]
) -> dict[int, dict[str, Any] | None]:
    """Return the record in each of these versions, or None; versions whose files are gone are left out."""
    try:
        return _read_states(table, versions, key)
    except spark_errors() as error:
        if len(versions) == 1:
            if not is_gone(error):
                raise
            return {}
    found: dict[int, dict[str, Any] | None] = {}
    for version in reversed(versions):
        one = _states(table, [version], key)
        if not one:
            break
        found |= one
    return found


def _read_states(
    table: PastTable, versions: Sequence[int], key: Mapping[str, str]
) -> dict[int, dict[str, Any] | None]:
    flag, file = name_sql(table.system.deleted), name_sql(table.system.filename)
    frames, types = [], {}
    for version in versions:
        frame = _of_record(table.read(version), key)
        types[version] = frame.schema
        frames.append(
            frame.selectExpr(
                f"{version} AS n", f"{flag} AS deleted", f"{file} AS file", f"{table.values(frame)} AS v"
            )
        )
    union = frames[0]
    for frame in frames[1:]:
        union = union.unionAll(frame)
    rows = {int(row["n"]): {**row.asDict(), "types": types[row["n"]]} for row in union.collect()}
    return {version: rows.get(version) for version in versions}


def _of_record(frame: DataFrame, key: Mapping[str, str]) -> DataFrame:
    """Return the rows with a business key, whose values are texts: `007` is 7 for a number."""

    def equal(name: str, text: str) -> str:
        kind = frame.schema[name].dataType
        if isinstance(kind, _as_text()):
            return f"cast({name_sql(name)} AS string) = {text_sql(text)}"
        return f"{name_sql(name)} = try_cast({text_sql(text)} AS {kind.simpleString()})"

    return frame.where(" AND ".join(equal(*each) for each in key.items()))


def _version(table: PastTable, row: Mapping[str, Any]) -> RecordVersion:
    is_past = _is_past(table, row["file"])
    commit = (
        next((each for each in table.log if each.content.get("app") == past_app(table.app_id)), None)
        if is_past
        else _commit_of_file(table, row["file"], row.get("at_version"))
    )
    return RecordVersion(
        since=row["since"],
        until=row["until"],
        is_deleted=bool(row["deleted"]),
        values=parse_values(row["v"], row["types"]),
        slice=row["file"],
        run_id=None if commit is None else commit.content.get("run"),
        version=row.get("at_version") if commit is None else commit.version,
        origin="history_from" if is_past else "slice",
    )


def _is_past(table: PastTable, file: str | None) -> bool:
    """Return whether a row comes from before the first slice, by the declaration that was loaded then."""
    loaded = json.loads(table.properties.get(HISTORY_PROPERTY) or "{}")
    folder = str(loaded.get("folder") or "").rstrip("/").rpartition("/")[2]
    if file is None or not loaded:
        return False
    return file == loaded.get("table") or (bool(folder) and file.startswith(f"{folder}/"))


def _commit_of_file(table: PastTable, name: str | None, version: int | None) -> Commit | None:
    if version is not None:
        return next((commit for commit in table.log if commit.version == version), None)
    found = None
    for commit in table.log:
        if any(each.name == name for each in slices_in(commit, table.app_id)):
            found = commit
    return found


def _instant(column: str, name: str) -> str:
    return f"date_format({column}, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'\") AS {name}"


def _same(life: Mapping[str, Any], state: Mapping[str, Any]) -> bool:
    return all(life[name] == state[name] for name in ("v", "deleted"))
