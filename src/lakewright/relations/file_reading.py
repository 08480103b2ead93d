"""How the files of a `file` relation become rows: read as those of slices are, and converted to its columns.

Where a project asks for Spark's own way, Spark converts the values of CSV and JSON. It would give all CSV
files the declared columns by position: a file whose columns are in another order would be read with wrong
values, and further columns would be lost.

Source: the rules of reading, "Two steps" and "What fits".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lakewright.errors import SpecError, TargetError
from lakewright.lake.columns import reader_schema
from lakewright.lake.files import Files, files_at
from lakewright.lake.frames import empty_frame
from lakewright.lake.partition import Partition, canonical_partition
from lakewright.lake.paths import FileEntry, join, parent
from lakewright.reader.files import CsvGroup, file_sql, folder_values, names_of, path_sql, read_files
from lakewright.reader.source import TEXTS, Form, KnownColumns, Reading, Source, form_of_options
from lakewright.schema.conversion import convert
from lakewright.schema.names import look_alike, shown
from lakewright.schema.rules import ValueRules
from lakewright.schema.shape import NESTED, plain_type, without_void
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import TEXT, StructField
from lakewright.spec.models.fields import Field, PartitionField
from lakewright.transform.steps import find_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


_UTC = ("UTC", "Etc/UTC", "GMT", "Z")

_SPARKS_OWN = (
    "enabledatetimeparsingfallback",
    "locale",
    "nanvalue",
    "negativeinf",
    "positiveinf",
    "singlevariantcolumn",
    "timezone",
)
"""Options, in lower case, about how values are written that only Spark's own readers know."""

_FORMATS = {"date": "dateformat", "timestamp": "timestampformat", "timestamp_ntz": "timestampntzformat"}


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads files of one format.

    Attributes:
        workspace: The project that declares them.
        label: The relation as messages name it.
        format: The format.
        options: Spark's options for the format.
        partitions: The relation's partition columns, which files have in their paths.
        fields: The declared columns; None without a schema.
    """

    workspace: Workspace
    label: str
    format: str
    options: Mapping[str, str]
    partitions: Sequence[PartitionField]
    fields: Sequence[Field] | None

    def frame(self, place: str, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the files at a place; rows of other partitions may be left out.

        Args:
            place: A file, a folder or a pattern.
            partitions: Values of partition columns, which folders have in their names; all if there are none.

        Raises:
            TargetError: There are no files, or they can't be read as they are declared.
        """
        source = self._source(place, partitions)
        if self.fields is not None and not any(file.size for file in source.files):
            columns = ((each.name, plain_type(each.type).ddl) for each in self.fields)
            return empty_frame(self.workspace.spark, columns)
        declared = self._in_files
        types = {
            name.lower(): each.type for each in declared for name in (each.renamed_from, each.name) if name
        }
        known = KnownColumns(
            self.workspace.lake.settings.timezone,
            type_of=lambda name: types.get(name.lower()),
            names=tuple(types),
            without_rows=tuple(StructField(each.name, plain_type(each.type)) for each in declared),
        )
        reading = Reading(
            self.workspace.spark,
            files_at(source.place, self.workspace.lake),
            source,
            self._form,
            known,
            note=lambda text: self.workspace.note(f"{self.label}: {text}"),
        )
        frame = read_files(
            reading,
            schema_of=self._csv_schema,
            schema=reader_schema(declared) or None,
            is_by_spark=self._is_by_spark,
        )
        return self._typed(frame)

    def _source(self, place: str, partitions: Sequence[Partition]) -> Source:
        files = files_at(place, self.workspace.lake)
        found = files.matching(place)
        if not found:
            raise TargetError(
                f"{self.label}: there is nothing at {place}",
                remedy="Check the location; the CREATE phase of a relation target creates it.",
            )
        base = _base(place, found)
        paths = [each for path in found for each in files_below(files, path)]
        if self.fields is None and not paths:
            raise TargetError(
                f"{self.label}: there is no file at {place} to infer its columns from",
                remedy="Declare its schema.",
            )
        below = [
            FileEntry(path.removeprefix(base).lstrip("/") or parent(path)[1], size) for path, size in paths
        ]
        source = Source(
            label=self.label,
            place=base,
            files=tuple(below),
            kind=self.format,
            is_folder=[base] != [path for path, _ in paths],
            is_whole=found == [base],
            is_relation=True,
            given={**self._strict, **self.options},
        )
        kept = [file for file in source.files if self._may_be_in(file, partitions)]
        return source.only(kept) if kept else source

    def _may_be_in(self, file: FileEntry, partitions: Sequence[Partition]) -> bool:
        """Return whether a file may have rows of one of the partitions, if any are given."""
        if not partitions:
            return True
        names = {each.name.lower(): each.name for each in self.partitions}
        try:
            found = folder_values(file.name)
            own = {names[name.lower()]: value for name, value in found.items() if name.lower() in names}
            texts = canonical_partition(self.partitions, {name: text or "" for name, text in own.items()})
        except (SpecError, ValueError):
            return True  # the query says what is wrong with it
        return any(
            all(texts.get(name, value) == value for name, value in each.items()) for each in partitions
        )

    @property
    def _form(self) -> Form:
        return form_of_options(self.format, self.options)

    @property
    def _lower(self) -> Mapping[str, str]:
        return {name.lower(): value for name, value in self.options.items()}

    @property
    def _in_files(self) -> list[Field]:
        """The declared columns that are not partition columns."""
        divided = {each.name.lower() for each in self.partitions}
        return [each for each in self.fields or () if each.name.lower() not in divided]

    @property
    def _corrupt(self) -> str:
        """The column that receives the text of records that do not parse, if it is declared."""
        return self._lower.get("columnnameofcorruptrecord", "_corrupt_record")

    @property
    def _is_lenient(self) -> bool:
        is_lenient = self._lower.get("mode", "FAILFAST").upper() != "FAILFAST"
        return is_lenient or any(each.name == self._corrupt for each in self.fields or ())

    @property
    def _strict(self) -> Mapping[str, str]:
        """The options with which a record that does not fit the columns fails the query.

        Spark's own default reads such a value as null, and leaves out fields that are too many.
        """
        options = {}
        if self.format == "csv" and not self._lower.keys() & {"quote", "escape"}:
            options["unescapedQuoteHandling"] = "RAISE_ERROR"
        if self.format in TEXTS:
            options["mode"] = "PERMISSIVE" if self._is_lenient else "FAILFAST"
        return options

    @property
    def _is_by_spark(self) -> bool:
        """Whether Spark converts the values, because of options that only its readers know."""
        options = self._lower
        has_formats = any(name in options for name in _FORMATS.values())
        # A column has one format, also for all that is inside it.
        is_mixed = has_formats and any(
            isinstance(field.type, NESTED) and any(each in field.type.ddl for each in _FORMATS)
            for field in self.fields or ()
        )
        is_own = (
            self._is_guessed or is_mixed or self._is_lenient or any(name in options for name in _SPARKS_OWN)
        )
        return self.format in TEXTS and is_own

    @property
    def _is_guessed(self) -> bool:
        """Whether Spark is to infer the types of CSV."""
        return self.fields is None and self._lower.get("inferschema", "false").lower() == "true"

    @property
    def local_zone(self) -> str | None:
        """The time zone in which times are written whose format may have no offset; None if that is UTC."""
        is_own = self.format in TEXTS and self.fields is not None and not self._is_by_spark
        return self._zone if is_own and self._zone != "UTC" and "timestampformat" in self._lower else None

    @property
    def _zone(self) -> str:
        # The SQL that converts times takes a session of another zone for one of UTC.
        session_zone = self.workspace.spark.conf.get("spark.sql.session.timeZone")
        return self.workspace.lake.settings.timezone if session_zone in _UTC else "UTC"

    def _csv_schema(self, group: CsvGroup) -> str | None:
        """Return the columns of CSV files, in their order; None if Spark is to infer their types."""
        has_header = self._form.header
        if self.fields is None:
            if has_header:
                self._note(group, header_doubt(group.first, self._form.separator))
            texts = [Field(name=name, type=TEXT) for name in names_of(group, self._form, is_numbered=True)]
            return None if self._is_guessed else reader_schema(texts)
        corrupt = [each for each in self._in_files if each.name == self._corrupt]
        declared = [each for each in self._in_files if each not in corrupt]
        line = [value.strip(" \t") for value in group.first]
        try:
            columns = columns_of_file(line, declared, has_header=has_header)
        except ValueError as error:
            raise TargetError(
                f"{self.label} can't be read: the header of {group.paths[0]} is not as declared: {error}",
                remedy="Correct the header, or declare the column by the name that it has.",
            ) from error
        if has_header:
            self._note(group, header_doubt(line, self._form.separator, columns, declared))
        if self._is_by_spark:
            return reader_schema([*columns, *corrupt])
        return reader_schema(Field(name=each.name, type=TEXT) for each in columns)

    def _note(self, group: CsvGroup, doubt: str | None) -> None:
        if doubt is not None:
            self.workspace.note(f"{self.label}: the header of {group.paths[0]} {doubt}")

    def _typed(self, frame: DataFrame) -> DataFrame:
        """Return the columns in their types; one that the files lack is null.

        Without a declared type, that is the type on which all values agree. A value that does not fit fails
        the query.
        """
        fields = self.fields
        if fields is None:
            types = {each.name.lower(): each.as_field() for each in self.partitions}
            own = {each.name: without_void(type_of(each.dataType)) or TEXT for each in frame.schema.fields}
            fields = [types.get(name.lower(), Field(name=name, type=kind)) for name, kind in own.items()]
        place = f"concat({text_sql(self.label)}, ', ', {path_sql(file_sql(frame))})"
        made = (f"{self._value(frame, each, place)} as {name_sql(each.name)}" for each in fields)
        return frame.selectExpr(*made)

    def _value(self, frame: DataFrame, field: Field, place: str) -> str:
        present = {each.name.lower() for each in self.fields or ()}
        former = field.renamed_from if (field.renamed_from or "").lower() not in present else None
        names = [find_name(frame.columns, name) for name in (field.name, former) if name]
        option = self._lower.get(_FORMATS.get(field.type.ddl, ""))
        rules = ValueRules(self._zone, format=field.format or option)
        values = []
        for name in names:
            if name is not None:
                own = type_of(frame.schema[name].dataType)
                made = convert(name_sql(name), own, field.type, column=field.name, rules=rules)
                values.append(made.placed(place).strict)
        if not values:
            return f"cast(null as {plain_type(field.type).ddl})"
        return values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"


def _base(place: str, found: Sequence[str]) -> str:
    """Return the path that the found ones are below: the place itself, unless that is a pattern."""
    if found == [place]:
        return place
    path = urlsplit(place).path
    fixed = "/".join(takewhile(lambda part: not set(part) & set("*?[{"), path.split("/")))
    first = urlsplit(found[0]).path
    return found[0][: len(found[0]) - len(first) + len(fixed)] or "/"


def files_below(files: Files, place: str) -> Iterator[tuple[str, int]]:
    """Yield the path and the size of each file at or below a place."""
    for entry in files.listed(place):
        yield place if entry.name == parent(place)[1] else join(place, entry.name), entry.size


_SEPARATORS = (";", "\t", "|", ",")


def columns_of_file(line: Sequence[str], declared: Sequence[Field], *, has_header: bool) -> tuple[Field, ...]:
    """Return the columns to read a file with, in the order of its fields.

    Where a header names a declared column at another place than the declaration, columns are matched by name.
    Otherwise the place counts, as Flowman has it, so that a declaration may rename columns. Fields that are
    not declared are texts that nobody selects.

    Args:
        line: The values of its first record.
        declared: The declared columns.
        has_header: Whether the record has the names of the columns.

    Raises:
        ValueError: A column is not found by name, but the header has one that only looks like it.

    Example:
        >>> declared = [Field(name="id", type=TEXT), Field(name="price", type=TEXT)]
        >>> [each.name for each in columns_of_file(["price", "more", "id"], declared, has_header=True)]
        ['price', '_c1', 'id']
        >>> [each.name for each in columns_of_file(["ID", "Preis"], declared, has_header=True)]
        ['id', 'price']
    """
    names = _declared_names(line, declared) if has_header else []
    places = {field.name.lower(): place for place, field in enumerate(declared)}
    # Where a header has a name twice, the first of them is meant.
    if all(
        places.get(name, place) == place for place, name in enumerate(names) if names.index(name) == place
    ):
        return (*declared[: len(line)], *map(_other, range(len(declared), len(line))))
    for field in declared:
        if field.name.lower() not in names and (other := look_alike(field.name, line)) is not None:
            raise ValueError(
                f"it has {shown(other[0])}, which only looks like the declared column {shown(field.name)}"
            )
    left = {field.name.lower(): field for field in declared}
    return tuple(left.pop(name) if name in left else _other(place) for place, name in enumerate(names))


def _declared_names(line: Sequence[str], declared: Sequence[Field]) -> list[str]:
    """Return the names of a header in lower case; a column's former name counts as its name."""
    present = {field.name.lower() for field in declared}
    former = {field.renamed_from.lower(): field.name.lower() for field in declared if field.renamed_from}
    return [name if name in present else former.get(name, name) for name in map(str.lower, line)]


def header_doubt(
    line: Sequence[str],
    separator: str,
    columns: Sequence[Field] = (),
    declared: Sequence[Field] | None = None,
) -> str | None:
    """Return what may be wrong with the header of a file; None if nothing is.

    Args:
        line: Its values.
        separator: What separates its columns.
        columns: The columns to read the file with.
        declared: The declared columns, if there are any.
    """
    sign = _other_separator(line, separator)
    if sign is not None and (declared is None or len(declared) > 1):
        sign = sign.replace("\t", "\\t")
        return f'is one column. If `{sign}` separates its columns, set `options: {{sep: "{sign}"}}`'
    renamed = _renamed(line, columns, declared or ())
    if renamed is None:
        return None
    name, other = renamed
    return (
        f"has {name} where the schema has {other}, which is read by position. If it is the same column, "
        f"declare `renamedFrom: {name}`; otherwise correct the schema"
    )


def _renamed(
    line: Sequence[str], columns: Sequence[Field], declared: Sequence[Field]
) -> tuple[str, str] | None:
    """Return the first name of a header that differs from that of the column which is read, and that one."""
    wanted = {field.name for field in declared}
    for own, name, field in zip(line, _declared_names(line, declared), columns, strict=False):
        if field.name in wanted and name != field.name.lower():
            return own if own.isprintable() else shown(own), field.name
    return None


def _other(place: int) -> Field:
    return Field(name=f"_c{place}", type=TEXT)


def _other_separator(line: Sequence[str], separator: str) -> str | None:
    """Return what probably separates the columns of a header that has only one; None if it has several."""
    found = [sign for sign in _SEPARATORS if sign in line[0]] if len(line) == 1 else []
    return next((sign for sign in found if sign != separator), None)
