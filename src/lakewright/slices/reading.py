"""Reading of a slice: exactly its files, with the options and types that its format needs.

Source: rules of entities, "Slices"; `processing-strategies.md`, "Behavior" (reads the source slice).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from lakewright.lake.files import files_at
from lakewright.lake.observation import observe_table
from lakewright.lake.parquet_footer import schema_fingerprint
from lakewright.lake.paths import local_path
from lakewright.reader.files import folder_columns, read_files
from lakewright.reader.source import KnownColumns, Reading, Source, form_of_slices
from lakewright.schema.spark import type_of
from lakewright.schema.sql import text_sql
from lakewright.schema.types import TEXT, Scalar, Struct, StructField, Type
from lakewright.transform.bad_rows import CORRUPT
from lakewright.transform.pipeline import expressions_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.slices.discovery import Slice
    from lakewright.spec.models.entity import Entity


T = TypeVar("T")

_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./-]+")
"""Paths that are the same in a URI; a name with `=` may be that of a partition."""


def source_of(slice_: Slice, kind: str) -> Source:
    """Return the files of a slice, of one format, as what is read together."""
    return Source(
        label=f"the slice {slice_.name}",
        place=slice_.path,
        files=slice_.files,
        kind=kind,
        is_folder=slice_.is_folder,
        is_whole=slice_.is_whole,
        details={"path": slice_.path},
        subject=slice_.name,
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

    If the entity puts bad rows aside, those that can't be read as the others are in the column `CORRUPT`.

    Args:
        lake: The lake.
        session: A strict session.
        slice_: The slice.
        entity: The entity.
        others: Slices with the same columns that are read with it; see `same_columns`.
        known: What is known of the columns of JSON; by default, their types in the table of the entity.
        note: Receives what a user must know of columns that are left out, or are of several kinds.

    Raises:
        SliceError: A quote in a CSV file is not closed, a text file has bytes that its encoding does not
            have, or a file is compressed in another way than its name says.
    """
    known = table_types(lake, entity) if known is None else known
    is_json, wanted = entity.reads_json, _wanted_types(entity, known)
    used = {word for _, text in expressions_of(entity) for word in re.findall(r"\w+", text.lower())}
    form = form_of_slices(entity.settings.slice_format)
    known_columns = KnownColumns(
        entity.settings.naive_zone(lake.settings.timezone),
        type_of=wanted,
        names=(*(each.source for each in entity.columns), *entity.names_with_values),
        keys=entity.business_keys,
        is_used=lambda name: not used.isdisjoint(re.findall(r"\w+", name.lower())),
        without_rows=_columns_without_rows(entity, wanted if is_json else lambda _: TEXT),
    )
    reading = Reading(
        session,
        files_at(slice_.path, lake),
        source_of(slice_, form.kind),
        form,
        known_columns,
        corrupt=CORRUPT if entity.settings.on_bad_rows == "quarantine" else None,
        others=[place for each in others for place in source_of(each, form.kind).places],
        note=note,
    )
    return read_files(reading)


def read_together(
    lake: Lake,
    session: SparkSession,
    slices: Sequence[Slice],
    entity: Entity,
    *,
    known: KnownTypes | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> tuple[DataFrame, str]:
    """Return the rows of one slice, or of slices for which `same_columns` gives the same text, lazily.

    Returns:
        The rows, and SQL of the position of a row's slice among these; a frame that is made of projections
        and filters of the rows can use it.
    """
    frame = read_slice(lake, session, slices[0], entity, others=slices[1:], known=known, note=note)
    if len(slices) == 1:
        return frame, "0"
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


def read_in_groups(items: Iterable[T], entity: Entity, slice_of: Callable[[T], Slice]) -> Iterator[list[T]]:
    """Yield items whose slices follow each other and can be read together; others one by one."""
    for mark, group in groupby(items, lambda each: same_columns(slice_of(each), entity)):
        alike = list(group)
        yield from [alike] if mark is not None else ([each] for each in alike)


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


def _wanted_types(entity: Entity, known: KnownTypes) -> Callable[[str], Type | None]:
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


def _columns_without_rows(entity: Entity, wanted: Callable[[str], Type | None]) -> tuple[StructField, ...]:
    """Return the columns that an entity declares, for a slice that has no rows, and so has none of them.

    None are returned if one has no type. Optional columns are left out: a slice may lack them.
    """
    names = (each.source for each in entity.columns if not (each.is_calculated or each.optional))
    types = {name: wanted(name) for name in names}
    columns = tuple(StructField(name, kind) for name, kind in types.items() if kind is not None)
    return columns if len(columns) == len(types) else ()
