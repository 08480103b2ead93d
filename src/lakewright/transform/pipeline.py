"""The common pipeline: turns a slice as it was read into rows of its silver table.

Source: `processing-strategies.md`, "Common Processing Pipeline".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING

from lakewright.schema.canonical import CanonicalForm
from lakewright.schema.fault import Reason, fault_sql
from lakewright.schema.shape import without_void
from lakewright.schema.spark import column_types, columns_of, type_of
from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import Struct, StructField, Type
from lakewright.spec.models.column import normal_name
from lakewright.spec.models.entity import Strategy
from lakewright.transform import steps
from lakewright.transform.bad_rows import (
    bad_rows,
    parsed_rows,
    unparsed_rows,
    without_bad_rows,
)
from lakewright.transform.lacking_columns import LackingColumns, with_lacking_columns
from lakewright.transform.required_columns import check_declared_columns, field_paths, lacking_setting_error
from lakewright.transform.sequence import check_sequence_type, kept_rows, rank_by_sequence
from lakewright.transform.storable_columns import check_names, final_names
from lakewright.transform.system_columns import SystemColumns
from lakewright.transform.typed_columns import TableTypes, typed_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.spec.models.entity import Entity


_PLAIN = frozenset(("tinyint", "smallint", "int", "bigint", "string", "date", "timestamp", "boolean"))
"""Types, as Spark writes them, whose values are equal if their hashes are; texts with a collation aren't."""


@dataclass(frozen=True, slots=True)
class PreparedSlice:
    """A slice with the columns of its silver table, as a lazy frame.

    Attributes:
        frame: The rows, including system columns.
        system: Names of the system columns.
        names: Name of each column in the source to its name in silver.
        key_columns: Columns of the business key by their names in silver; none if the slice has its own
            primary key.
        watermarks: Columns of watermarks, as declared, to their names in silver.
        identity: Columns in silver that are equal exactly if the primary keys are equal, for comparing rows.
        partitions: Names of the partition columns in silver.
        has_key: Whether rows have a primary key.
        shape: The strategy whose columns the rows have.
        hashed: Columns of the source that the source hash is computed from.
        key_fields: Columns that the primary key is computed from, by their names in the source.
        is_key_cast: Whether it is computed from values in their declared types; otherwise from the source's.
        form: The canonical form of its hashes.
        sequence: Name in silver of the column that orders the states of a record; None without one.
        ranked: All rows of the slice with the columns `IS_KEPT` and `IS_LATEST`, if `frame` holds only the
            latest row of each key; otherwise None.
        bad: Rows that were left out because of a fault, if the entity puts such rows aside; see
            `transform.bad_rows`.
        lacking: Declared columns that the slice lacks though they are not optional, by their names in the
            source; they are null.
        found: The types that the slice gave columns which were converted, by their names in silver.
    """

    frame: DataFrame
    system: SystemColumns
    names: Mapping[str, str]
    key_columns: tuple[str, ...]
    watermarks: Mapping[str, str]
    identity: tuple[str, ...]
    partitions: tuple[str, ...]
    has_key: bool
    shape: Strategy
    hashed: tuple[StructField, ...]
    key_fields: tuple[StructField, ...]
    is_key_cast: bool
    form: CanonicalForm
    sequence: str | None = None
    ranked: DataFrame | None = None
    bad: DataFrame | None = None
    lacking: tuple[str, ...] = ()
    found: Mapping[str, Type] = field(default_factory=dict)

    @property
    def key_sql(self) -> str:
        """SQL of the primary key over columns of silver, if `identity` is the columns of the business key."""
        return self.form.hash_of(self._in_silver(self.key_fields))

    @property
    def hash_sql(self) -> str:
        """SQL of the source hash over columns of silver, if it is one of values in their types there."""
        return self.form.hash_of(self._in_silver(self.hashed))

    def digest(self, matched: Collection[str]) -> tuple[str, ...]:
        """Return SQL over columns of silver of numbers by which two rows with the same hash are known.

        Args:
            matched: Columns of silver that the rows have alike.
        """
        fields = (each for each in self.hashed if self.names[each.name] not in matched)
        return self.form.digest_of(self._in_silver(fields))

    def _in_silver(self, fields: Iterable[StructField]) -> Iterator[tuple[StructField, str]]:
        return ((field, name_sql(self.names[field.name])) for field in fields)


def prepare(
    frame: DataFrame,
    entity: Entity,
    system: SystemColumns,
    *,
    slice_name: str,
    at: datetime,
    strategy: Strategy,
    is_key_cast: bool,
    form: CanonicalForm,
    table: TableTypes | None = None,
    hashed: Collection[str] | None = None,
    may_lack_columns: bool = False,
    place: str | None = None,
) -> PreparedSlice:
    """Return the slice after all steps of the pipeline except the last, which the strategies perform.

    Args:
        frame: The slice as it was read.
        entity: The entity.
        system: Names of its system columns.
        slice_name: The value of the column with the slice's name.
        at: The processing time.
        strategy: The strategy that processes it; rows of Historic, and of Full for a historic entity, are
            versions.
        is_key_cast: Whether the primary key is computed from values in their declared types; otherwise it is
            from the source's, as in tables that were made so.
        form: The canonical form of the table's hashes.
        table: The types of the table; None if there is none.
        hashed: Names in silver of the only columns whose changes count; None for all columns.
        may_lack_columns: Whether columns that are not optional may be lacking; see `lacking_columns`.
        place: SQL of where a row is from, which the error of a value then names.

    Raises:
        SchemaDriftError: Declared columns are missing, or names clash.
        TargetError: Spark rejects an expression.
    """
    unparsed, frame = unparsed_rows(frame), parsed_rows(frame)
    whole = _without_omitted(frame, entity)
    check_names(whole.columns, system.reserved)
    typeless_in_slice, delivered = _typeless(whole), whole.columns
    frame, lacking = _with_declared_columns(frame, entity, system, may_lack_columns=may_lack_columns)
    source = _source_columns(frame, entity, system, hashed)
    zone, kept = entity.settings.naive_zone(form.zone), _kept_deleted(entity, source)
    typed = typed_columns(frame, entity, system, source.names, table=table, zone=zone, kept=kept, place=place)
    bad = None
    puts_aside = entity.settings.on_bad_rows == "quarantine"
    if puts_aside:
        faults = [*_null_keys(entity, system, source), *typed.faults()]
        keys = (*source.keys, *((system.key,) if source.has_own_key else ()))
        record = dict(zip(delivered, delivered, strict=True)) | _supplied(delivered, entity, system)
        parts = (unparsed, bad_rows(frame, faults, keys, record))
        found = [each for each in parts if each is not None]
        bad = reduce(lambda one, other: one.unionByName(other), found) if found else None
        frame = without_bad_rows(frame, faults)
    typeless = _typeless(frame) - _given_a_type(entity, system, source)
    unasked = ((typeless & typeless_in_slice) - _asked_for(entity)) | _may_stay_away(entity, lacking)
    shape = Strategy.HISTORIC if Strategy.HISTORIC in {strategy, entity.strategy} else entity.strategy
    # Tables of earlier versions keep hashes, or keys, of values that are not converted yet.
    typed_before = "hash" if form.is_of_typed_values else "key" if is_key_cast else "names"
    if typed_before == "hash":
        frame = typed.applied(frame, has_faults=not puts_aside)
    hashed_fields = steps.hashed_fields(frame, system, source.excluded)
    frame = steps.with_columns(frame, {system.hash: form.hash_sql(hashed_fields)})
    if shape is Strategy.HISTORIC:
        frame = steps.open_versions(frame, system, at)
    frame = steps.with_columns(frame, {system.filename: text_sql(slice_name)})
    if typed_before == "key":
        frame = typed.applied(frame, has_faults=not puts_aside)
    columns = {field.name: field for field in columns_of(frame.schema)}
    key_fields = tuple(columns[name] for name in source.keys)
    frame = steps.key_rows(frame, system, key_fields, form)
    if typed_before == "names":
        frame = typed.applied(frame, has_faults=not puts_aside)
    frame = steps.flag_deleted(steps.rename(frame, source.names), system)
    frame = frame.selectExpr("*", steps.instant_column_sql(system.last_seen, at))
    left_out = frozenset(_left_out(entity, source.names, table, lacking, typeless=typeless, unasked=unasked))
    has_key = source.has_own_key or bool(key_fields)
    sequence = _sequence(frame, entity, source.names, delivered) if has_key else None
    ranked = None
    if sequence is not None and entity.settings.duplicates == "latest":
        ranked = rank_by_sequence(frame, system, sequence)
        frame = kept_rows(ranked)
    return PreparedSlice(
        frame=frame.drop(*left_out),
        sequence=sequence,
        ranked=None if ranked is None else ranked.drop(*left_out),
        bad=bad,
        lacking=lacking.notes,
        system=system,
        names=source.names,
        key_columns=tuple(source.names[name] for name in source.keys),
        identity=_identity(frame, system, {source.names[field.name]: field.type for field in key_fields}),
        watermarks=_silver_names(
            [mark.column_name for mark in entity.watermarks], source.names, ("watermark", delivered)
        ),
        partitions=_resolved(frame.columns, entity.partition_columns),
        has_key=has_key,
        hashed=tuple(each for each in hashed_fields if source.names.get(each.name) not in left_out),
        key_fields=key_fields,
        is_key_cast=is_key_cast,
        form=form,
        shape=shape,
        found={source.names.get(name, name): kind for name, kind in typed.found.items()},
    )


def _with_declared_columns(
    frame: DataFrame, entity: Entity, system: SystemColumns, *, may_lack_columns: bool
) -> tuple[DataFrame, LackingColumns]:
    """Return the frame after the entity's transformations and calculated columns, with its names checked.

    The second value is what the slice lacks.
    """
    structs = {n: kind for n, kind in column_types(frame.schema).items() if isinstance(kind, Struct)}
    fields = {name.lower(): list(field_paths(kind, name)) for name, kind in structs.items()}
    columns = (column.source for column in entity.columns if not column.is_calculated)
    names = tuple(dict.fromkeys((*columns, *entity.names_with_values)))
    frame, lacking = with_lacking_columns(frame, entity, system, names, may_lack_columns=may_lack_columns)
    # An expression that uses a column which is missing is not at fault.
    check_declared_columns(frame.columns, entity, system, lacking.names, fields=fields)
    frame = lacking.emptied(steps.calculate(frame, entity.calculated), entity)
    frame = _without_omitted(frame, entity)
    check_names(frame.columns, system.reserved)
    return _with_supplied(frame, entity, system), lacking


def _without_omitted(frame: DataFrame, entity: Entity) -> DataFrame:
    return frame.drop(*(column.source for column in entity.columns if column.omit))


@dataclass(frozen=True, slots=True)
class _SourceColumns:
    """The columns of a slice before system columns are added; for the others see `PreparedSlice`.

    Attributes:
        excluded: Columns that the source hash leaves out.
        keys: Names of the columns of the business key; none if the slice has its own primary key.
        has_own_key: Whether the slice has its own primary key.
    """

    names: Mapping[str, str]
    keys: tuple[str, ...]
    excluded: list[str]
    has_own_key: bool


def _source_columns(
    frame: DataFrame, entity: Entity, system: SystemColumns, hashed: Collection[str] | None
) -> _SourceColumns:
    supplied = {name.lower() for name in system.suppliable}
    renames = {column.source: column.result for column in entity.columns}
    names = final_names([n for n in frame.columns if n.lower() not in supplied], renames, system.all)
    has_own_key = steps.find_name(frame.columns, system.key) is not None
    keys = () if has_own_key else tuple(dict.fromkeys(_resolved(frame.columns, entity.business_keys)))
    excluded = [*_sources(entity, entity.settings.hash_exclude), *_unknown(names, hashed)]
    return _SourceColumns(names, keys, excluded, has_own_key)


def _null_keys(entity: Entity, system: SystemColumns, source: _SourceColumns) -> Iterator[str]:
    """Yield SQL of the faults of keys that are null."""
    own = [system.key] if source.has_own_key else []
    for name in [*own, *source.keys] if entity.settings.null_keys == "error" else own:
        yield f"if({name_sql(name)} is null, {fault_sql(Reason.NULL_KEY, name)}, null)"


def _kept_deleted(entity: Entity, source: _SourceColumns) -> frozenset[str]:
    """Return the names in silver, in lower case, of columns that count for records that arrive deleted."""
    keys = (source.names[name] for name in source.keys)
    partitions = (column.silver for column in entity.columns if column.is_partition)
    sequence = (
        () if entity.settings.sequence_by is None else (entity.silver_name(entity.settings.sequence_by),)
    )
    return frozenset(name.lower() for name in (*keys, *partitions, *entity.partition_columns, *sequence))


def _given_a_type(entity: Entity, system: SystemColumns, source: _SourceColumns) -> set[str]:
    """Return the names, in lower case, of columns that get a type even if the slice has none for them."""
    declared = (column.source for column in entity.columns if column.type is not None)
    return {name.lower() for name in (*declared, *source.keys, *system.suppliable)}


def _typeless(frame: DataFrame) -> set[str]:
    """Return the names, in lower case, of columns that have no type, nor any inside."""
    return {each.name.lower() for each in frame.schema.fields if without_void(type_of(each.dataType)) is None}


def _asked_for(entity: Entity) -> set[str]:
    """Return the names, in lower case, of declared columns: those in the source and those in silver."""
    declared = (name for column in entity.columns for name in (column.source, column.silver))
    return {name.lower() for name in (*declared, *(mark.column_name for mark in entity.watermarks))}


def _may_stay_away(entity: Entity, lacking: LackingColumns) -> frozenset[str]:
    """Return what a slice lacks, and its table need not have: a table has all columns of its partitions."""
    partitions = {column.source.lower() for column in entity.columns if column.is_partition}
    return lacking.names.union(lacking.filled) - partitions


def _left_out(
    entity: Entity,
    names: Mapping[str, str],
    table: TableTypes | None,
    lacking: LackingColumns,
    *,
    typeless: Collection[str],
    unasked: Collection[str],
) -> Iterator[str]:
    """Yield the names in silver of columns that no table has yet, and that gets none from this slice.

    These are columns that the slice lacks, if the table's columns stay as they are, and columns that have no
    type. Columns that the entity declares become texts, but what the slice lacks becomes no text in place of
    the struct that a later one brings.
    """
    evolves = entity.settings.schema_drift == "evolve"
    for source, final in names.items():
        own = source.lower()
        if table is not None and final.lower() in table.types:
            continue
        is_lacking = table is not None and not evolves and own in lacking.names
        is_typeless = own in typeless and ((evolves and own in unasked) or own in lacking.filled)
        if is_lacking or is_typeless:
            yield final


def _identity(frame: DataFrame, system: SystemColumns, keys: Mapping[str, Type]) -> tuple[str, ...]:
    """Return the key's columns if the primary key is made of their values, otherwise the primary key."""
    types = {field.name: field.type for field in columns_of(frame.schema)}
    is_plain = all(kind == types[name] and kind.ddl in _PLAIN for name, kind in keys.items())
    return tuple(keys) if keys and is_plain else (system.key,)


def _with_supplied(frame: DataFrame, entity: Entity, system: SystemColumns) -> DataFrame:
    """Rename the columns that are declared to be the deleted flag or the primary key."""
    for present, name in _supplied(frame.columns, entity, system).items():
        frame = frame.withColumnRenamed(present, name)
    return frame


def _supplied(columns: list[str], entity: Entity, system: SystemColumns) -> dict[str, str]:
    """Return the system columns that columns are declared to be, by the names in the source."""
    pairs = (
        (steps.find_name(columns, column.source), steps.find_name(system.suppliable, column.silver))
        for column in entity.columns
    )
    return {present: name for present, name in pairs if present is not None and name is not None}


def _unknown(names: Mapping[str, str], hashed: Collection[str] | None) -> list[str]:
    """Return the columns of the source that aren't among the hashed ones."""
    if hashed is None:
        return []
    known = {name.lower() for name in hashed}
    return [source for source, final in names.items() if final.lower() not in known]


def _sources(entity: Entity, names: tuple[str, ...]) -> list[str]:
    """Return the given names, and the names in the source of those that are new names."""
    renamed = {column.result.lower(): column.source for column in entity.columns}
    return [*names, *(renamed[name.lower()] for name in names if name.lower() in renamed)]


def _resolved(present: list[str], wanted: tuple[str, ...]) -> tuple[str, ...]:
    found = (steps.find_name(present, name) for name in wanted)
    return tuple(name for name in found if name is not None)


def _sequence(frame: DataFrame, entity: Entity, names: Mapping[str, str], delivered: list[str]) -> str | None:
    """Return the name in silver of the entity's `sequence_by`, whose type is checked."""
    declared = entity.settings.sequence_by
    if declared is None:
        return None
    (name,) = _silver_names([declared], names, ("sequence_by", delivered)).values()
    check_sequence_type(name, frame.schema[name].dataType)
    return name


def _silver_names(
    columns: list[str], names: Mapping[str, str], given: tuple[str, list[str]]
) -> dict[str, str]:
    """Return the names in silver of columns that a setting names: as in the source, or by their new ones.

    `given` is the setting, and the columns that the slice has.
    """
    by_source = {source.lower(): final for source, final in names.items()}
    finals = {final.lower(): final for final in names.values()}
    found = {}
    for column in columns:
        final = by_source.get(column.lower()) or finals.get(normal_name(column).lower())
        if final is None:
            raise lacking_setting_error(given[1], column, given[0])
        found[column] = final
    return found


def expressions_of(entity: Entity) -> tuple[tuple[str, str], ...]:
    """Return the column and the text of every expression that computes a column, in order."""
    injected = [
        (step.column, step.expression) for step in entity.transformations if step.column and step.expression
    ]
    selected = [(text, text) for step in entity.transformations for text in step.select]
    calculated = [(column.source, column.expression) for column in entity.calculated if column.expression]
    return (*injected, *selected, *calculated)
