"""Reading of JSON: a pass that finds the kinds of all values, then one in types that lose none of them.

Most files are read by Spark's reader of JSON. Where it would lose something, rows are made of variants, which
know the kind of each value: lines that are lists of records, records that do not parse and are put aside,
and fields whose names differ only by case.

Source: the rules of reading, "Two steps", "Places" and "Inference, where nothing is declared".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakewright.reader.json_look import look_at
from lakewright.reader.json_types import (
    MIXED,
    JsonColumn,
    exact_type,
    is_mixed,
    json_columns,
    merged,
    parse_kind,
    same_names,
    with_doubles,
)
from lakewright.reader.source import KnownColumns, Reading, Source
from lakewright.schema.fits import widened
from lakewright.schema.scalars import class_of
from lakewright.schema.shape import NESTED, has_part, parts, with_parts
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import TEXT, VARIANT, Array, Decimal, MapOf, Struct, StructField, Type
from lakewright.spark.functions import functions
from lakewright.spec.models.type_text import parse_sql_type
from lakewright.spec.words import counted
from lakewright.transform.typed_columns import INFERRED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_END = "lakewright: the end of the line"
_LONG_NUMBER = "[0-9][0-9.]{38}"
"""A number that may have more than 38 digits."""
_RECORD, _TEXT = "_lakewright_record", "_lakewright_text"
_IS_OBJECT = f"try_cast({_RECORD} as struct<x: variant>) is not null"
_MOST_COLUMNS = 10_000
_DEEPEST = 250
"""Levels that a record may have; the JVM's stack overflows some hundred levels deeper."""


def read_json(reading: Reading) -> DataFrame:
    """Return the records of JSON files in raw types, lazily; each line is a record or a list of records.

    No value is lost: see `json_types`. A column without values is of the type `void`. The metadata of others
    name, under `INFERRED`, what type they have if nothing is known of them, unless it is their own. The
    column `corrupt`, for the text of what is no record, is left out if everything is one.

    Raises:
        LakewrightError: Something in the files is no record; or fields whose names differ only by case have
            values in one record.
    """
    source, corrupt = reading.source, reading.corrupt
    look = look_at(source, reading.options)
    found = _kinds(reading) if look is None else _Kinds(look.kind, has_records=True)
    if found.bad and corrupt is None:
        raise source.error(
            f"{counted(found.bad, 'bad record')}, each no JSON object, or one with a name twice, "
            "or more than one in a line",
            "Correct them"
            if source.is_relation
            else "Correct them, or put them aside by `on_bad_rows: quarantine` in the entity's settings",
        )
    if not found.has_records and not found.bad:
        return reading.without_rows
    columns = json_columns(found.kind, reading.known.type_of, is_exact=look is not None and look.is_exact)
    if not all(column.name for column in columns):
        raise source.error("there is a column without a name", "Name it at the source")
    if len(columns) > _MOST_COLUMNS:
        raise source.error(
            f"there are {len(columns)} columns, and a table has at most {_MOST_COLUMNS}",
            "Deliver what varies as a list of names and values",
        )
    for column in columns:
        if not column.is_known and is_mixed(column.raw):
            reading.note(
                f"the column {column.name} has values of several kinds, such as texts and numbers; where "
                "they mix, it has texts, unless its type is declared"
            )
    clashes = tuple(_clashes(_RECORD, found.kind, Struct(tuple(column.field for column in columns))))
    is_by_variants = bool(found.bad or clashes)
    if not is_by_variants:
        columns = columns if look else _without_long_variants(reading, columns)
        return _with_metadata(_parsed(reading, columns), columns)
    if look is None and _has_long_numbers(reading):
        raise source.error(
            "numbers of more than 38 digits can't be read beside bad records, or beside names that are equal "
            "but for case",
            "Deliver these numbers as texts",
        )
    records = _records(_variants(reading))
    _check_clashes(source, records, clashes)
    return _with_metadata(_of_variants(records, columns, corrupt if found.bad else None), columns)


def _has_own_syntax(options: Mapping[str, str]) -> bool:
    """Return whether an option says of records or values what only Spark's reader of JSON knows."""
    given = {name.lower() for name, text in options.items() if text.lower() == "true"}
    return any(name == "multiline" or name.startswith("allow") for name in given)


def _load(reading: Reading, schema: str, options: Mapping[str, str]) -> DataFrame:
    """Return the files with some columns, read with options that count more than their own."""
    from pyspark.sql.types import StructType

    depth = {"maxNestingDepth": str(_DEEPEST)}
    return reading.load(schema=schema or StructType(), options={**depth, **options})


@dataclass(frozen=True, slots=True)
class _Kinds:
    """What the first pass finds.

    Attributes:
        kind: The kind of all records.
        has_records: Whether there is one.
        bad: How many are no objects, or do not parse.
    """

    kind: Struct
    has_records: bool
    bad: int = 0


def _kinds(reading: Reading) -> _Kinds:
    """Return the kinds of all values, found by one query; by two if a line is no object, but a list."""
    lines = _variants(reading)
    is_bad = f"{_RECORD} is null or is_variant_null({_RECORD})"
    kind, bad, count = _facts(lines, _RECORD, is_bad)
    if isinstance(kind, Struct):
        return _Kinds(kind, count > bad, bad)
    if bad < count:
        record = f"if({_IS_OBJECT}, {_RECORD}, null)"
        kind, bad, count = _facts(_records(lines), record, f"not {_IS_OBJECT}")
    return _Kinds(kind if isinstance(kind, Struct) else Struct(()), count > bad, bad)


def _facts(frame: DataFrame, record: str, is_bad: str) -> tuple[Type, int, int]:
    """Return the kind of records, how many rows are bad, and how many there are."""
    row = frame.selectExpr(f"schema_of_variant_agg({record})", f"count_if({is_bad})", "count(*)").first()
    kind, bad, count = ("VOID", 0, 0) if row is None else row
    return parse_kind(kind), bad, count


def _variants(reading: Reading) -> DataFrame:
    """Return a row for each line: its value, or its text if it does not parse."""
    if not _has_own_syntax(reading.options):
        return _exact_variants(reading)
    options = {
        "mode": "PERMISSIVE",
        "singleVariantColumn": _RECORD,
        "columnNameOfCorruptRecord": _TEXT,
    }
    return _load(reading, f"{_RECORD} variant, {_TEXT} string", options)


def _lines(reading: Reading) -> DataFrame:
    """Return the text of each line, which Spark's reader of text does not decode."""
    lines = reading.load(kind="text")
    encoding, text = reading.options.get("encoding"), "value"
    if encoding is not None:
        text = f"ltrim('\ufeff', decode(cast(value as binary), {text_sql(encoding)}))"
    return lines.selectExpr(f"{text} as {_TEXT}")


def _exact_variants(reading: Reading) -> DataFrame:
    """Return a row for each line: its value, or its text if it is not exactly one; Spark's skips the rest."""
    filled = _lines(reading).where(f"trim(both ' \t\r\n' from {_TEXT}) <> ''")
    parsed = filled.selectExpr(f"{_alone_sql(_TEXT, _DEEPEST)} as {_RECORD}", _TEXT)
    return parsed.selectExpr(_RECORD, f"if({_RECORD} is null, {_TEXT}, null) as {_TEXT}")


def _records(lines: DataFrame) -> DataFrame:
    """Return a row for each record; a line that is a list has several."""
    items = f"explode(coalesce(try_cast({_RECORD} as array<variant>), array({_RECORD}))) as {_RECORD}"
    return lines.select(*(name for name in lines.columns if name != _RECORD), functions.expr(items))


def _parsed(reading: Reading, columns: Sequence[JsonColumn]) -> DataFrame:
    """Return the records as Spark's reader of JSON makes them."""
    unused = _TEXT
    while any(column.name.lower() == unused for column in columns):
        unused += "_"
    fields = (f"{name_sql(column.name)} {column.raw.ddl}" for column in columns if not column.is_void)
    options = {"mode": "FAILFAST", "columnNameOfCorruptRecord": unused}
    return _load(reading, ", ".join(fields), options)


def _has_long_numbers(reading: Reading) -> bool:
    """Return whether a number may have more digits than a variant holds."""
    return not _lines(reading).where(f"{_TEXT} rlike '(^|[:,\\\\[])[ \\\\t]*-?{_LONG_NUMBER}'").isEmpty()


def _without_long_variants(reading: Reading, columns: Sequence[JsonColumn]) -> tuple[JsonColumn, ...]:
    """Return columns with texts in place of variants if a number in one has more digits than these hold."""
    mixed = {each.name: each.as_written() for each in columns if is_mixed(each.raw)}
    if not mixed:
        return tuple(columns)
    texts = (f"to_json(struct({name_sql(name)} as x)) rlike '{_LONG_NUMBER}'" for name in mixed)
    row = _parsed(reading, list(mixed.values())).selectExpr(*(f"bool_or({sql})" for sql in texts)).first()
    long = {name for name, is_long in zip(mixed, row or (), strict=True) if is_long}
    return tuple(mixed[each.name] if each.name in long else each for each in columns)


def _of_variants(records: DataFrame, columns: Sequence[JsonColumn], corrupt: str | None) -> DataFrame:
    """Return the records as they are made of variants, which hold numbers with an exponent as doubles."""
    record = f"if({_IS_OBJECT}, {_RECORD}, null) as {_RECORD}"
    text = f"if({_IS_OBJECT}, null, coalesce({_TEXT}, to_json({_RECORD}), 'null')) as {_TEXT}"
    values = [
        f"{_field_sql(_RECORD, column.sources, column.raw)} as {name_sql(column.name)}"
        for column in columns
        if not column.is_void
    ]
    aside = [] if corrupt is None else [f"{_TEXT} as {name_sql(corrupt)}"]
    return records.selectExpr(record, text).selectExpr(*values, *aside)


def _with_metadata(frame: DataFrame, columns: Sequence[JsonColumn]) -> DataFrame:
    """Return the records with columns in their order, voids among them, and with what is inferred."""
    own = {column.name: _column(column) for column in _settled(frame, columns)}
    others = [functions.col(name_sql(name)) for name in frame.columns if name not in own]
    return frame.select(*own.values(), *others)


def _column(column: JsonColumn) -> Column:
    if column.is_void:
        return functions.lit(None).alias(column.name)
    metadata = {} if column.inferred == column.raw else {INFERRED: column.inferred.ddl}
    return functions.col(name_sql(column.name)).alias(column.name, metadata=metadata)


def _settled(frame: DataFrame, columns: Sequence[JsonColumn]) -> list[JsonColumn]:
    """Return the columns; decimals that doubles do not hold exactly, where no type is known, stay decimals.

    Only these, which are longer than a double always holds, need a query.
    """
    unsure = {}
    for column in columns:
        doubles = with_doubles(column.raw)
        if not column.is_sure and doubles != column.raw:
            value = name_sql(column.name)
            there_and_back = f"try_cast(try_cast({value} as {doubles.ddl}) as {column.raw.ddl})"
            # Variants and maps cannot be compared.
            unsure[column.name] = (
                f"not to_json(struct({there_and_back} as x)) <=> to_json(struct({value} as x))"
            )
    if not unsure:
        return list(columns)
    row = frame.selectExpr(*(f"coalesce(bool_or({sql}), false)" for sql in unsure.values())).first()
    exact = {name for name, is_lost in zip(unsure, row or (), strict=True) if is_lost}
    return [
        replace(each, inferred=exact_type(each.raw, each.inferred)) if each.name in exact else each
        for each in columns
    ]


def with_inferred_types(frame: DataFrame, known: KnownColumns) -> DataFrame:
    """Return raw values in their inferred types, in all parts of columns of which no type is known.

    So are values that expressions use, whatever the slice's other values are. Other columns keep their raw
    types, with the inferred type of the whole in their metadata, under `INFERRED`.
    """
    columns = {}
    for field in frame.schema.fields:
        raw, target = type_of(field.dataType), known.type_of(field.name)
        inferred = field.metadata.get(INFERRED)
        own, agreed = _shown(
            raw,
            raw if inferred is None else parse_sql_type(inferred),
            target,
            is_used=known.is_used(field.name),
        )
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
    if not isinstance(raw, NESTED) or type(raw) is not type(inferred):
        return _shown_leaf(raw, inferred, target, is_used=is_used)
    both = zip(parts(raw, target), parts(inferred), strict=True)
    pairs = [_shown(own, agreed, known, is_used=is_used) for (_, own, known), (_, agreed, _) in both]
    return with_parts(raw, (pair[0] for pair in pairs)), with_parts(raw, (pair[1] for pair in pairs))


def _shown_leaf(raw: Type, inferred: Type, target: Type | None, *, is_used: bool) -> tuple[Type, Type]:
    if target is None:
        return inferred, inferred
    if raw == VARIANT and class_of(target) == "text":
        return TEXT, TEXT  # whatever kinds the slice has
    is_number = class_of(inferred) in ("whole", "decimal", "float")
    # Whole numbers decide no type, and a double may not hold decimals.
    agreed = widened(target, raw) if is_number and class_of(target) in ("decimal", "float") else inferred
    return (agreed if is_used and not isinstance(target, Decimal) else raw), agreed


def _field_sql(record: str, sources: Sequence[StructField], raw: Type, depth: int = 0) -> str:
    """Return SQL of a field of an object: the value of the first of some fields that has one.

    Args:
        record: SQL of the object, a variant.
        sources: The fields, whose names differ only by case.
        raw: The type of the value.
        depth: How many lambdas the field is in.
    """
    values = [_value_sql(_part_sql(record, field.name), field.type, raw, depth) for field in sources]
    return f"coalesce({', '.join(values)})" if values else f"cast(null as {raw.ddl})"


def _part_sql(record: str, name: str) -> str:
    """Return SQL of a field of an object, as a variant. A cast takes names that a path can't have."""
    return f"cast({record} as struct<{name_sql(name)}: variant>).{name_sql(name)}"


def _value_sql(value: str, kind: Type, raw: Type, depth: int) -> str:
    """Return SQL of a variant in its raw type."""
    if not any(_clashes(value, kind, raw)):
        return value if raw == MIXED else f"cast({value} as {raw.ddl})"
    if isinstance(kind, Struct) and isinstance(raw, Struct):
        parts = (
            f"{text_sql(field.name)}, {_field_sql(value, sources, field.type, depth)}"
            for sources, field in _fields(kind, raw)
        )
        is_object = f"cast({value} as struct<x: variant>) is not null"
        return f"if({is_object}, named_struct({', '.join(parts)}), null)"
    found = _items(value, kind, raw)
    if found is None:
        return f"cast({value} as {raw.ddl})"
    items, own, inner = found
    item = f"x{depth} -> {_value_sql(f'x{depth}', own, inner, depth + 1)}"
    if isinstance(raw, MapOf):
        keys = f"map_keys(cast({value} as map<string, variant>))"
        return f"map_from_arrays({keys}, transform({items}, {item}))"
    return f"transform({items}, {item})"


def _fields(kind: Struct, raw: Struct) -> Iterator[tuple[tuple[StructField, ...], StructField]]:
    """Yield the fields of a raw type, each after the fields of a kind that it is made of."""
    sources = {fields[0].name.lower(): fields for fields in same_names(kind)}
    for field in raw.fields:
        yield sources.get(field.name.lower(), ()), field


def _items(value: str, kind: Type, raw: Type) -> tuple[str, Type, Type] | None:
    """Return SQL of the elements of a list, or the values of a map, with their kind and their raw type."""
    if isinstance(kind, Array) and isinstance(raw, Array):
        return f"cast({value} as array<variant>)", kind.element, raw.element
    if isinstance(kind, Struct) and isinstance(raw, MapOf):
        values = f"map_values(cast({value} as map<string, variant>))"
        return values, merged(field.type for field in kind.fields), raw.value
    return None


def _clashes(value: str, kind: Type, raw: Type, depth: int = 0) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield names of fields of a variant that differ only by case, and SQL of whether several have values."""
    if isinstance(kind, Struct) and isinstance(raw, Struct):
        for sources, field in _fields(kind, raw):
            if len(sources) > 1:
                given = (f"int({_part_sql(value, each.name)} is not null)" for each in sources)
                yield tuple(each.name for each in sources), f"{' + '.join(given)} > 1"
            for each in sources:
                yield from _clashes(_part_sql(value, each.name), each.type, field.type, depth)
    elif (found := _items(value, kind, raw)) is not None:
        items, own, inner = found
        for names, sql in _clashes(f"x{depth}", own, inner, depth + 1):
            yield names, f"coalesce(exists({items}, x{depth} -> {sql}), false)"


def _check_clashes(
    source: Source, records: DataFrame, clashes: Sequence[tuple[tuple[str, ...], str]]
) -> None:
    """Check that of fields whose names differ only by case, one has a value in each record.

    Raises:
        LakewrightError: Several have one.
    """
    if not clashes:
        return
    places = (f"if({sql}, input_file_name(), null) as c{n}" for n, (_, sql) in enumerate(clashes))
    found = records.where(_IS_OBJECT).selectExpr(*places)
    row = found.selectExpr(*(f"min({name})" for name in found.columns)).first()
    for (names, _), place in zip(clashes, row or (), strict=True):
        if place is not None:
            raise source.error(
                f"a record of {place} has values in {' and '.join(map(repr, names))}, names that are equal "
                "but for case",
                "Rename one of them at the source, deliver the slice again",
            )


def _alone_sql(text: str, levels: int) -> str:
    """Return SQL of the variant of a text that is exactly one value; null for others.

    The text is parsed as the first element of a list, of which the second one is a mark.
    """
    mark = f"', \"{_END}\"]'"
    options = f"map('maxNestingDepth', '{levels + 1}')"
    parsed = f"from_json(concat('[', {text}, {mark}), 'array<variant>', {options})"
    is_alone = f"size(x) = 2 and cast(get(x, 1) as string) = '{_END}'"
    return f"get(get(filter(array({parsed}), x -> {is_alone}), 0), 0)"
