"""Reading of a slice: exactly its files, with the options and types that its format needs.

Source: rules of entities, "Slices"; `processing-strategies.md`, "Behavior" (reads the source slice).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from lakewright.lake.files import files_at
from lakewright.lake.observation import observe_table
from lakewright.lake.parquet_footer import schema_fingerprint
from lakewright.lake.paths import local_path
from lakewright.reader.avro import read_avro
from lakewright.reader.compression import check_compression, first_bytes
from lakewright.reader.content import with_content
from lakewright.reader.csv import read_csv
from lakewright.reader.far import check_encoding
from lakewright.reader.fault_errors import error_of
from lakewright.reader.faults import FileFault
from lakewright.reader.folders import folder_columns, with_folder_columns
from lakewright.reader.form import TEXTS, Form, form_of_slices
from lakewright.reader.json import read_json
from lakewright.reader.orc import read_orc
from lakewright.reader.parquet import read_parquet
from lakewright.reader.source import Source, SourceFile
from lakewright.schema.scalars import class_of
from lakewright.schema.shape import has_part
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import TEXT, VARIANT, Array, Decimal, MapOf, Scalar, Struct, StructField, Type
from lakewright.spec.models.type_text import parse_sql_type
from lakewright.transform.bad_rows import CORRUPT, NO_COLUMN
from lakewright.transform.pipeline import expressions_of
from lakewright.transform.typed_columns import INFERRED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.slices.bronze import Slice
    from lakewright.spec.models.entity import Entity

__all__ = [
    "CORRUPT",
    "KnownTypes",
    "columns_without_rows",
    "read_slice",
    "read_together",
    "same_columns",
    "source_of",
    "table_types",
    "wanted_types",
    "with_inferred_types",
    "with_types_of",
]

_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./-]+")
"""Paths that are the same in a URI; a name with `=` may be that of a partition."""

_LISTING = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_MOST_LISTED = 1_000_000
"""Local folders and files, at most, that the driver lists by itself; it takes 0.1 ms for one."""


def source_of(slice_: Slice, kind: str) -> Source:
    """Return the files of a slice, of one format, as what is read together."""
    return Source(
        label=f"the slice {slice_.name}",
        place=slice_.path,
        files=tuple(SourceFile(file.name, file.size) for file in slice_.files),
        kind=kind,
        is_folder=slice_.is_folder,
        details={"path": slice_.path},
    )


def read_slice(
    lake: Lake,
    session: SparkSession,
    slice_: Slice,
    entity: Entity,
    *,
    others: Sequence[Slice] = (),
    known: KnownTypes | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> DataFrame:
    """Return the rows of a slice, lazily; columns of several files are merged by name.

    If the entity puts bad rows aside, rows of text files that do not parse are in the column `CORRUPT`.

    Args:
        lake: The lake.
        session: A strict session.
        slice_: The slice.
        entity: The entity.
        others: Slices with the same columns that are read with it; see `same_columns`.
        known: What is known of the columns of JSON, see `table_types`; by default, that there is no table.
        note: Receives what a user must know of columns that are left out, or are of several kinds.

    Raises:
        SliceError: A quote in a CSV file is not closed, a text file has bytes that its encoding does not
            have, or a file is compressed in another way than its name says.
    """
    form = form_of_slices(entity.settings.slice_format)
    source = source_of(slice_, form.kind)
    source.check_names()
    filled = source.only(file for file in source.files if file.size)
    if source.kind in TEXTS:
        firsts = first_bytes(source, files_at(source.place, lake).begin)
        check_compression(source, firsts)
        filled = with_content(source, firsts)
    if not filled.files and source.kind == "csv" and (empty := _without_rows(session, entity)) is not None:
        return empty
    source = filled if filled.files else source
    # By default a job of as many tasks as there are files lists them.
    session.conf.set(_LISTING, str(_MOST_LISTED if source.is_local else 32))
    if source.kind == "parquet":
        names = (*(each.source for each in entity.columns), *entity.names_with_values)
        places, keys = [each.path for each in others], entity.business_keys
        frame = read_parquet(lake, session, source, others=places, wanted=names, keys=keys, note=note)
        return with_folder_columns(frame, source)
    if source.kind in {"avro", "orc"}:
        reader = read_avro if source.kind == "avro" else read_orc
        return with_folder_columns(reader(lake, session, source), source)
    session.conf.set("spark.sql.legacy.javaCharsets", "false" if form.is_of_spark else "true")
    corrupt = CORRUPT if entity.settings.on_bad_rows == "quarantine" else None
    if source.kind == "csv":
        frame = read_csv(lake, session, source, form, corrupt=corrupt)
    else:
        frame = _read_json(session, source, entity, form, corrupt=corrupt, known=known or {}, note=note)
    return with_folder_columns(frame, source)


def _without_rows(session: SparkSession, entity: Entity) -> DataFrame | None:
    """Return a frame without rows, with the columns that an entity declares, as texts; None without any."""
    columns = [each.source for each in entity.columns if not (each.is_calculated or each.optional)]
    empty = session.range(0).selectExpr(*(f"cast(null as string) as {name_sql(name)}" for name in columns))
    return empty if columns else None


def read_together(
    lake: Lake,
    session: SparkSession,
    slices: Sequence[Slice],
    entity: Entity,
    *,
    note: Callable[[str], None] = lambda _: None,
) -> tuple[DataFrame, str]:
    """Return the rows of slices for which `same_columns` gives the same text, lazily.

    Returns:
        The rows, and SQL of the position of a row's slice among these; a frame that is made of projections
        and filters of the rows can use it.
    """
    frame = read_slice(lake, session, slices[0], entity, others=slices[1:], note=note)
    places = {
        text_sql(path.lstrip("/")): position
        for position, slice_ in enumerate(slices)
        for path in slice_.paths
    }
    files = ", ".join(places)
    positions = ", ".join(map(str, places.values()))
    file = "trim(leading '/' from substring(input_file_name(), 6))"  # after `file:`
    unknown = f"raise_error(concat('the file ', {file}, ' is of no slice'))"
    # A file whose path Spark writes in another way must not be lost.
    found = f"map_from_arrays(array({files}), array({positions}))[{file}]"
    return frame, f"coalesce({found}, {unknown})"


def same_columns(slice_: Slice, entity: Entity) -> str | None:
    """Return a text that is equal for slices that can be read together; None for one that cannot.

    These are local Parquet files with the same columns, and with names that no file system writes in another
    way.
    """
    if entity.settings.slice_format.kind != "parquet" or entity.settings.on_bad_rows == "quarantine":
        return None
    marks = set()
    for place in slice_.paths:
        path = local_path(place)
        if path is None or not _PLAIN_PATH.fullmatch(str(path)):
            return None
        try:
            marks.add(schema_fingerprint(path))
        except (ValueError, OSError):
            return None  # Spark reports the error when it reads the file
    folders = sorted(folder_columns(source_of(slice_, "parquet")).values(), key=sorted)
    return f"{marks.pop()} {list(map(sorted, folders))}" if len(marks) == 1 else None


def _read_json(
    session: SparkSession,
    source: Source,
    entity: Entity,
    form: Form,
    *,
    corrupt: str | None,
    known: KnownTypes,
    note: Callable[[str], None],
) -> DataFrame:
    """Return the records of JSON: raw where types are known, else in inferred types."""
    from pyspark.sql import functions

    try:
        check_encoding(session, source.paths, form)
    except FileFault as fault:
        raise error_of(source, fault, form) from fault
    wanted = wanted_types(entity, known)
    frame = read_json(
        session,
        source,
        wanted,
        options={**source.options, **form.options},
        corrupt=corrupt,
        empty=columns_without_rows(entity, known),
        note=note,
    )
    if frame.columns == [corrupt]:
        return frame.withColumn(NO_COLUMN, functions.lit(None).cast("string"))
    return with_inferred_types(frame, wanted, entity)


_DOUBLE = Scalar("double")

KnownTypes: TypeAlias = Mapping[str, Type]
"""Types of the columns of a table, by their names in silver in lower case."""


def table_types(lake: Lake, entity: Entity) -> KnownTypes:
    """Return the types of the columns of an entity's table; none without one, or if slices are no JSON."""
    if not entity.reads_json:
        return {}
    return {
        each.name.lower(): each.type
        for each in observe_table(lake, entity.places(lake.settings).silver).columns
    }


def with_types_of(frame: DataFrame, known: KnownTypes, entity: Entity) -> KnownTypes:
    """Return the known types with those of columns that a slice adds: the next slices must fit them, too."""
    if not entity.reads_json:
        return known
    own = {entity.silver_name(each.name).lower(): type_of(each.dataType) for each in frame.schema.fields}
    return {**{name: kind for name, kind in own.items() if kind != Scalar("void")}, **known}


def wanted_types(entity: Entity, known: KnownTypes) -> Callable[[str], Type | None]:
    """Return a function that gives the type of a column of the source: the declared one, else the table's.

    A column of whose fields some are declared by their paths has a struct of these and the table's others.
    A column that an expression replaces has none.
    """
    declared = {
        column.source.lower(): column.type
        for column in entity.columns
        if column.type is not None and not column.is_calculated
    }
    replaced = {name.lower() for name, _ in expressions_of(entity)}

    def wanted(name: str) -> Type | None:
        if (own := declared.get(name.lower())) is not None:
            return own
        of_table = None if name.lower() in replaced else known.get(entity.silver_name(name).lower())
        return _with_paths(of_table, f"{name.lower()}.", declared)

    return wanted


def _with_paths(kind: Type | None, path: str, declared: Mapping[str, Type]) -> Type | None:
    """Return a type in which fields have the types that are declared for their paths."""
    names = {each.removeprefix(path).partition(".")[0] for each in declared if each.startswith(path)}
    if not names:
        return kind
    fields = {f.name.lower(): f for f in kind.fields} if isinstance(kind, Struct) else {}
    for name in sorted(names):
        own, inner = fields.get(name), f"{path}{name}"
        found = declared.get(inner) or _with_paths(None if own is None else own.type, f"{inner}.", declared)
        if found is not None:
            fields[name] = StructField(name if own is None else own.name, found)
    return Struct(tuple(fields.values()))


def columns_without_rows(entity: Entity, known: KnownTypes) -> tuple[StructField, ...]:
    """Return the columns that an entity declares, for a slice of JSON that has no rows, and so tells none.

    Those without a declared type have that of the table's column. None are returned if one has neither.
    Optional columns are left out: a slice may lack them.
    """
    wanted = wanted_types(entity, known)
    names = (each.source for each in entity.columns if not (each.is_calculated or each.optional))
    types = {name: wanted(name) for name in names}
    columns = tuple(StructField(name, kind) for name, kind in types.items() if kind is not None)
    return columns if len(columns) == len(types) else ()


def with_inferred_types(frame: DataFrame, wanted: Callable[[str], Type | None], entity: Entity) -> DataFrame:
    """Return raw values in their inferred types, in all parts of columns of which no type is known.

    So are values that expressions use, whatever the slice's other values are. Other columns keep their raw
    types, with the inferred type of the whole in their metadata, under `INFERRED`.
    """
    from pyspark.sql import functions

    used = {word for _, text in expressions_of(entity) for word in re.findall(r"\w+", text.lower())}
    columns = {}
    for field in frame.schema.fields:
        raw, target = type_of(field.dataType), wanted(field.name)
        told = field.metadata.get(INFERRED)
        is_used = not used.isdisjoint(re.findall(r"\w+", field.name.lower()))
        own, agreed = _shown(raw, raw if told is None else parse_sql_type(told), target, is_used=is_used)
        value = name_sql(field.name)
        column = functions.col(value) if own == raw else functions.expr(f"cast({value} as {own.ddl})")
        # A struct of a known column may lack fields of the known type.
        if agreed != own or (target is not None and has_part(own, lambda part: isinstance(part, Struct))):
            columns[field.name] = column.alias(field.name, metadata={INFERRED: agreed.ddl})
        elif own != raw:
            columns[field.name] = column
    return frame.withColumns(columns) if columns else frame


def _shown(raw: Type, inferred: Type, target: Type | None, *, is_used: bool) -> tuple[Type, Type]:
    """Return the type that values are given, and the one on which they agree, part by part."""
    if isinstance(raw, Struct) and isinstance(inferred, Struct):
        known = {each.name.lower(): each.type for each in target.fields} if isinstance(target, Struct) else {}
        pairs = [
            _shown(one.type, other.type, known.get(one.name.lower()), is_used=is_used)
            for one, other in zip(raw.fields, inferred.fields, strict=True)
        ]
        return _struct_of(raw, [pair[0] for pair in pairs]), _struct_of(raw, [pair[1] for pair in pairs])
    if isinstance(raw, Array) and isinstance(inferred, Array):
        element = target.element if isinstance(target, Array) else None
        own, agreed = _shown(raw.element, inferred.element, element, is_used=is_used)
        return Array(own), Array(agreed)
    if isinstance(raw, MapOf) and isinstance(inferred, MapOf):
        value = target.value if isinstance(target, MapOf) else None
        own, agreed = _shown(raw.value, inferred.value, value, is_used=is_used)
        return MapOf(raw.key, own), MapOf(raw.key, agreed)
    return _shown_leaf(raw, inferred, target, is_used=is_used)


def _struct_of(names: Struct, types: Sequence[Type]) -> Struct:
    pairs = zip(names.fields, types, strict=True)
    return Struct(tuple(StructField(field.name, kind) for field, kind in pairs))


def _shown_leaf(raw: Type, inferred: Type, target: Type | None, *, is_used: bool) -> tuple[Type, Type]:
    if target is None:
        return inferred, inferred
    if raw == VARIANT and class_of(target) == "text":
        return TEXT, TEXT  # whatever kinds the slice has
    is_number = class_of(inferred) in ("whole", "decimal", "float")
    agreed = _DOUBLE if target == _DOUBLE and is_number else inferred
    return (agreed if is_used and not isinstance(target, Decimal) else raw), agreed
