"""What one slice changed in its entity's table, and the life of one record, read from the table's past."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.commit import Commit, has_changed_rows, is_gone, read_commits, readable
from lakewright.lake.observation import read_table
from lakewright.lake.spark_errors import spark_errors
from lakewright.manifest.lock import command
from lakewright.manifest.record import format_instant
from lakewright.manifest.verdict import Verdict
from lakewright.notebook import html_table, json_value, values_text
from lakewright.relations.entity import observe_silver
from lakewright.schema.conversion import convert
from lakewright.schema.rules import ValueRules
from lakewright.schema.scalars import class_of
from lakewright.schema.shape import NESTED
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import TEXT, VARIANT
from lakewright.slices.application import application_of
from lakewright.slices.chain import AppliedSlice, recorded_slice, slices_in
from lakewright.slices.discovery import called_name, item_id
from lakewright.spec.models.entity import Entity
from lakewright.spec.suggestions import suggestion
from lakewright.spec.words import counted
from lakewright.strategies.past_load import past_app
from lakewright.strategies.table_properties import HISTORY_PROPERTY
from lakewright.transform.row_values import object_sql, parse_values
from lakewright.transform.steps import find_name
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType


CHANGE_COLUMNS = ("change", "key", "before", "after")
"""What a table of `RowChange.shown` has in its columns."""


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

    @property
    def shown(self) -> tuple[str, ...]:
        """The change as a row of a table: what, the key, the values before and after."""
        return self.change, *map(values_text, (self.key, self.before, self.after))

    def as_json(self) -> dict[str, Any]:
        """Return the change as commands print it."""
        return {field.name: json_value(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True, slots=True, repr=False)
class SliceChanges:
    """What one slice changed in its entity's table.

    Attributes:
        version: The version of the table that its commit made.
        run_id: The run that processed it; None if the commit doesn't say.
        together: Other slices in the same commit: what they changed is among the changes.
        rewound: The version of an undo or a rebuild that has replaced rows since; None if there is
            none.
        counts: Number of records by change.
        rows: Some of the records, by key.
    """

    entity: str
    slice: str
    item_id: str
    version: int
    run_id: str | None
    together: tuple[str, ...]
    rewound: int | None
    counts: Mapping[str, int]
    rows: tuple[RowChange, ...]

    def __repr__(self) -> str:
        counts = " ".join(f"{name}={count}" for name, count in self.counts.items() if count)
        return f"<SliceChanges {self.entity}/{self.slice} {counts or 'none'}>"

    def _repr_html_(self) -> str:
        return html_table(repr(self)[1:-1], CHANGE_COLUMNS, (row.shown for row in self.rows), self.notes)

    @property
    def notes(self) -> list[str]:
        """What a reader must know of the changes."""
        notes = []
        if self.together:
            notes.append(f"in one commit with {', '.join(self.together)}: all changes are shown")
        if self.rewound is not None:
            notes.append(
                f"the undo or rebuild of version {self.rewound} has replaced rows of the table since"
            )
        return notes

    def as_json(self) -> dict[str, Any]:
        """Return the document that `history diff` prints."""
        shown: dict[str, Any] = {field.name: json_value(getattr(self, field.name)) for field in fields(self)}
        return {**shown, "rows": [row.as_json() for row in self.rows]}


def slice_changes(app: App, entity_name: str, slice_name: str, *, limit: int) -> SliceChanges:
    """Return what a slice changed: the records of the table before and after its commit, compared.

    With history, the open versions are compared.

    Raises:
        SpecError: There is no such entity.
        UsageError: The table's log has no commit of such a slice, or the entity has no business key.
        TargetError: The files of these versions are gone.
    """
    table = PastTable.of(app, entity_name)
    if not table.entity.business_keys:
        raise UsageError(
            f"{table.entity.called} has no business key, so its records can't be followed",
            remedy=Phrase("Compare two versions of the table with ", Command("sql", "--as-of"), "."),
        )
    commit, applied = table.commit_of(slice_name)
    others = tuple(each.name for each in slices_in(commit, table.app_id) if each != applied)
    counts, rows = changes_of(table, commit.version, limit=limit)
    return SliceChanges(
        entity=table.entity.called,
        slice=slice_name,
        item_id=applied.item_id,
        version=commit.version,
        run_id=commit.content.get("run"),
        together=others,
        rewound=table.rewound_since(commit.version),
        counts=counts,
        rows=rows,
    )


def changes_of(
    table: PastTable, version: int, *, limit: int
) -> tuple[Mapping[str, int], tuple[RowChange, ...]]:
    """Return the number of records that a version of a table changed, by change, and some of them by key.

    Raises:
        TargetError: The files of the version, or of that before it, are gone.
    """
    before, after = table.read(max(version - 1, 0)), table.read(version)
    changed = _changed(table, before if version else before.where("false"), after)
    with readable(table.entity.name, version - 1):
        counts = {
            str(row["change"]): int(row["n"])
            for row in changed.groupBy("change").count().toDF("change", "n").collect()
        }
        rows = changed.orderBy("key").limit(limit).collect()
    return counts, tuple(_change(row, before.schema, after.schema) for row in rows)


def _changed(table: PastTable, old: DataFrame, new: DataFrame) -> DataFrame:
    """Return `change`, `key`, `before` and `after` of the records that differ; all but `change` are JSON."""
    key, digest = name_sql(table.system.key), name_sql(table.system.hash)

    def side(frame: DataFrame, name: str) -> DataFrame:
        live = table.system.current_sql(has_history=table.system.has_history(frame.columns))
        frame = frame.where(live)
        keys = ((name, name_sql(name), frame.schema[name].dataType) for name in table.keys)
        return frame.selectExpr(
            f"{key} AS {name}_pk",
            f"{digest} AS {name}_hash",
            f"{table.values(frame)} AS {name}",
            f"{object_sql(keys, has_nulls=False)} AS {name}_key",
        )

    before, after = side(old, "before"), side(new, "after")
    joined = before.join(after, before["before_pk"] == after["after_pk"], "full_outer")
    return joined.where("not (before_pk <=> after_pk and before_hash <=> after_hash)").selectExpr(
        "CASE WHEN before_pk IS NULL THEN 'inserted' WHEN after_pk IS NULL THEN 'deleted' "
        "ELSE 'updated' END AS change",
        "coalesce(after_key, before_key) AS key",
        "before",
        "after",
    )


def _change(row: Row, old: StructType, new: StructType) -> RowChange:
    types = (("key", old if row["after"] is None else new), ("before", old), ("after", new))
    key, before, after = (None if row[n] is None else parse_values(row[n], kind) for n, kind in types)
    if before is not None and after is not None:
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        before, after = ({name: side.get(name) for name in names} for side in (before, after))
    return RowChange(key or {}, row["change"], before, after)


@dataclass(frozen=True)
class PastTable:
    """An entity's table with its log, oldest commit first."""

    app: App
    entity: Entity
    system: SystemColumns
    session: SparkSession
    log: tuple[Commit, ...]
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, app: App, name: str) -> PastTable:
        """Return the table of an entity.

        Raises:
            SpecError: There is no such entity.
            TargetError: It has no table yet.
        """
        entity = app.project.entity(name)
        address = entity.places(app.project.lake).silver
        state = observe_silver(app.lake, entity)
        system = SystemColumns(app.project.lake.systemfield_prefix, entity.destination)
        log = read_commits(app.lake, address)
        return cls(app, entity, system, app.lake.new_session(), log, state.properties)

    @property
    def app_id(self) -> str:
        """The application id of the entity's commits."""
        return str(application_of(self.app.project.name, self.entity))

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the business key, by their names in the table."""
        return tuple(column.silver for column in self.entity.columns if column.is_business_key)

    def read(self, version: int | None = None) -> DataFrame:
        """Return the rows of the last version, or of an earlier one.

        Raises:
            UsageError: It lacks columns by which records are followed, which `lacks` of the details names.
        """
        frame = read_table(self.session, self.entity.places(self.app.project.lake).silver, version)
        needed = (*self.keys, self.system.deleted)
        lacking = [name for name in needed if find_name(frame.columns, name) is None]
        if lacking:
            which = "the table" if version is None else f"version {version} of the table"
            raise UsageError(
                f"{which} of {self.entity.called} lacks {', '.join(lacking)}: it was made under another "
                "declaration",
                remedy=Phrase(Command("plan"), " shows whether the table is made again."),
                details={"lacks": lacking},
            )
        return frame

    def commit_of(self, name: str) -> tuple[Commit, AppliedSlice]:
        """Return the last commit that was made for a slice, alone or folded with others.

        An undo and a rebuild put slices into a table by one commit, which does not show what each changed.

        Raises:
            UsageError: The log has none.
        """
        known: dict[str, tuple[Commit, AppliedSlice]] = {}
        rewound: dict[str, Commit] = {}
        for commit in self.log:
            for applied in slices_in(commit, self.app_id):
                if "rewind" in commit.content:
                    rewound[applied.name] = commit
                else:
                    known[applied.name] = (commit, applied)
        if name in known:
            return known[name]
        if name in rewound:
            raise UsageError(
                f"the log of {self.entity.name} does not show what slice {name!r} changed: it came into the "
                f"table with others, by the undo or rebuild of version {rewound[name].version}",
                remedy=Phrase(Command("history", "row"), " shows the life of a record."),
            )
        verdict, has_changed_nothing = self._recorded(name)
        if verdict is Verdict.PROCESSED:
            raise self._no_commit_error(name, has_changed_nothing=has_changed_nothing)
        if verdict is not Verdict.UNKNOWN:
            raise UsageError(
                f"the log of {self.entity.name} has no commit of slice {name!r}, which is {verdict}",
                remedy=Phrase(
                    "To see what it would change: ",
                    Command("process", self.entity.called, name, "--rehearse"),
                    ".",
                ),
            )
        raise UsageError(
            f"the log of {self.entity.name} has no commit of a slice {name!r}",
            remedy=suggestion(name, known) or "The log no longer reaches back so far.",
        )

    def _recorded(self, name: str) -> tuple[Verdict, bool]:
        """Return the verdict of a slice, and whether processing it has changed nothing."""
        item = self.app.ledger.item(item_id(self.entity.places(self.app.project.lake).slices.place(name)))
        application = application_of(self.app.project.name, self.entity)
        recorded = recorded_slice(self.app.store, item, application)
        return item.verdict(application), recorded is not None and recorded.is_unwritten

    def _no_commit_error(self, name: str, *, has_changed_nothing: bool) -> UsageError:
        """Return the error of a processed slice without a commit: it has changed nothing, or the log ends."""
        typed = command("show", called_name(self.entity.called, name))
        if has_changed_nothing:
            return UsageError(
                f"the log of {self.entity.name} has no commit of slice {name!r}, although it was processed",
                remedy=Phrase("A slice that changes no row makes none: ", typed, " shows more."),
            )
        return UsageError(
            f"the log of {self.entity.name} does not show the commit of {name}",
            remedy=Phrase(
                "It is older than what the log keeps, or the table was written anew since. ",
                typed,
                " shows how many rows the slice changed.",
            ),
        )

    def rewound_since(self, version: int) -> int | None:
        """Return the last version after another one by which an undo or a rebuild replaced rows, or None."""
        later = (each.version for each in self.log if "rewind" in each.content and each.version > version)
        return max(later, default=None)

    def key_value(self, frame: DataFrame, name: str, text: str) -> str | None:
        """Return SQL of a value of the business key, read as those of slices; None if texts are compared."""
        kind = type_of(frame.schema[name].dataType)
        if class_of(kind) == "text" or kind == VARIANT or isinstance(kind, NESTED):
            return None
        rules = ValueRules(self.entity.settings.naive_zone(self.app.project.lake.timezone))
        return convert(text_sql(text), TEXT, kind, column=name, rules=rules).sql

    def values(self, frame: DataFrame) -> str:
        """Return the source's columns of a frame as one JSON text in SQL."""
        own = (field for field in frame.schema.fields if field.name.lower() not in self.system.all)
        return object_sql((field.name, name_sql(field.name), field.dataType) for field in own)


BEFORE = "versions before {} are of another declaration, or their files gone: earlier states are not known"
"""What is said of a record if the past of its table does not reach back to its first version."""

VERSIONS_AT_ONCE = 20
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
        origin: `slice`; `history_from` for a version from before the first slice: `slice` is then the export,
            or the table, that it comes from; or `foreign` for one that another writer made, of no slice.
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
        reaches_back_to: The oldest version of the table that could be read; None if its rows show all.
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
        notes = [BEFORE.format(back)] if back else []
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
        wanted = " ".join(name.upper() for name in columns) or "no key"
        raise UsageError(
            f"the business key of {table.entity.called} is {wanted}, not {counted(len(key), 'value')}",
            remedy=Phrase("Write ", _typed(table), ".") if columns else None,
        )
    named = dict(zip(columns, key, strict=True))
    versions: tuple[RecordVersion, ...]
    oldest: int | None = None
    frame = table.read()
    if table.system.has_history(frame.columns):
        versions = tuple(_history(table, frame, named))
    else:
        versions, oldest = _walk(table, named)
    if not versions:
        _check_types(table, frame, named)
    return RecordLife(table.entity.called, named, versions, oldest)


def _typed(table: PastTable) -> Command:
    """Return the command that shows a record, with the names of the business key for its values."""
    return Command("history", "row", table.entity.called, *(name.upper() for name in table.keys))


def _check_types(table: PastTable, frame: DataFrame, key: Mapping[str, str]) -> None:
    """Raise an error if a value of a business key is none of its column's type, so that no record has it.

    Raises:
        UsageError: With the first such value.
    """
    for name, text in key.items():
        value = table.key_value(frame, name, text)
        if value is None:
            continue
        row = frame.sparkSession.sql(f"SELECT {value} AS v").first()
        if row is None or row["v"] is None:
            raise UsageError(
                f"{text!r} is no value of the business key {name} of type "
                f"{frame.schema[name].dataType.simpleString()}",
                remedy=Phrase("Write ", _typed(table), " with values as the table has them."),
            )


def _history(table: PastTable, frame: DataFrame, key: Mapping[str, str]) -> Iterator[RecordVersion]:
    """Yield the versions of a record in a table with history."""
    start, end, _ = map(name_sql, table.system.temporal)
    found = _of_record(table, frame, key).selectExpr(
        _instant(start, "since"),
        _instant(end, "until"),
        *_marks(table, frame),
        f"{table.values(frame)} AS v",
    )
    for row in sorted(found.collect(), key=lambda row: str(row["since"])):
        yield _version(table, {**row.asDict(), "types": frame.schema})


def _walk(table: PastTable, key: Mapping[str, str]) -> tuple[tuple[RecordVersion, ...], int | None]:
    """Return the states that a record had, and the oldest version that could be read."""
    versions = [commit.version for commit in table.log]
    states: dict[int, dict[str, Any] | None] = {}
    for start in range(len(versions), 0, -VERSIONS_AT_ONCE):
        some = versions[max(start - VERSIONS_AT_ONCE, 0) : start]
        found = _states(table, some, key)
        states |= found
        if len(found) < len(some):
            break
    times = {commit.version: commit for commit in table.log}
    lives: list[dict[str, Any]] = []
    for version in sorted(states):
        state, at = states[version], times[version].at
        since = None if at is None else format_instant(at)
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
    except UsageError as error:
        if "lacks" not in error.details:
            raise
        if len(versions) == 1:
            return {}
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
    frames, types = [], {}
    for version in versions:
        frame = _of_record(table, table.read(version), key)
        types[version] = frame.schema
        if table.system.has_history(frame.columns):  # it was made under another strategy
            frame = frame.where(table.system.current_sql(has_history=True))
        values = f"{table.values(frame)} AS v"
        frames.append(frame.selectExpr(f"{version} AS n", *_marks(table, frame), values))
    union = frames[0]
    for frame in frames[1:]:
        union = union.unionAll(frame)
    rows = {int(row["n"]): {**row.asDict(), "types": types[row["n"]]} for row in union.collect()}
    return {version: rows.get(version) for version in versions}


def _marks(table: PastTable, frame: DataFrame) -> tuple[str, str]:
    """Return SQL of whether a row is deleted, and of its slice, which rows of an adopted table lack."""
    file = find_name(frame.columns, table.system.filename)
    return (
        f"{name_sql(table.system.deleted)} AS deleted",
        f"{'cast(null AS string)' if file is None else name_sql(file)} AS file",
    )


def _of_record(table: PastTable, frame: DataFrame, key: Mapping[str, str]) -> DataFrame:
    """Return the rows with a business key, whose values are texts: `007` is 7 for a number."""

    def equal(name: str, text: str) -> str:
        value = table.key_value(frame, name, text)
        if value is None:
            return f"cast({name_sql(name)} AS string) = {text_sql(text)}"
        return f"{name_sql(name)} = {value}"

    return frame.where(" AND ".join(equal(*each) for each in key.items()))


def _version(table: PastTable, row: Mapping[str, Any]) -> RecordVersion:
    is_past = _is_past(table, row["file"])
    commit = (
        next((each for each in table.log if each.content.get("app") == past_app(table.app_id)), None)
        if is_past
        else _commit_of_file(table, row["file"], row.get("at_version"))
    )
    is_foreign = commit is not None and not commit.content and has_changed_rows(commit)
    return RecordVersion(
        since=row["since"],
        until=row["until"],
        is_deleted=bool(row["deleted"]),
        values=parse_values(row["v"], row["types"]),
        slice=None if is_foreign else _made_by(table, commit) or row["file"],
        run_id=None if commit is None else commit.content.get("run"),
        version=row.get("at_version") if commit is None else commit.version,
        origin="history_from" if is_past else "foreign" if is_foreign else "slice",
    )


def _made_by(table: PastTable, commit: Commit | None) -> str | None:
    """Return the slice that a commit has applied, if it is the only one; a delete keeps a row's file."""
    slices = () if commit is None or "rewind" in commit.content else slices_in(commit, table.app_id)
    return slices[0].name if len(slices) == 1 else None


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
