"""Formats and options of files: those that Spark knows, to find misspelt ones, and those of Hive's tables.

Source: `CSVOptions`, `JSONOptions`, `ParquetOptions`, `OrcOptions`, `TextOptions` and the options of file
sources of Spark 4.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.relations.relation import Relation
from lakewright.spec.models.base import TextMap, from_text
from lakewright.spec.suggestions import suggestion

_EACH = """
basePath ignoreCorruptFiles ignoreMissingFiles maxRecordsPerFile modifiedAfter modifiedBefore
partitionOverwriteMode path pathGlobFilter recursiveFileLookup timeZone
"""

_TEXTS = """
charset columnNameOfCorruptRecord compression dateFormat enableDateTimeParsingFallback encoding lineSep locale
mode multiLine samplingRatio singleVariantColumn timeFormat timestampFormat timestampNTZFormat
"""

_OF_FORMATS = {
    "csv": f"""
{_TEXTS} charToEscapeQuoteEscaping codec columnPruning comment delimiter emptyValue enforceSchema escape
escapeQuotes header ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace inferSchema inputBufferSize
maxCharsPerColumn maxColumns nanValue negativeInf nullValue positiveInf preferDate quote quoteAll sep
unescapedQuoteHandling
""",
    "json": f"""
{_TEXTS} allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers allowNumericLeadingZeros
allowSingleQuotes allowUnquotedControlChars allowUnquotedFieldNames dropFieldIfAllNull ignoreNullFields
inferTimestamp prefersDecimal pretty primitivesAsString sortKeys useUnsafeRow
writeNonAsciiCharacterAsCodePoint
""",
    "orc": "compression mergeSchema",
    "parquet": "compression datetimeRebaseMode int96RebaseMode mergeSchema",
    "text": "compression encoding lineSep wholetext",
}


def unknown_options(format_: str, names: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Yield the options that Spark does not know for files of a format, each with what may be meant.

    Names with a dot are settings of a library, which are not known here; nor are those of other formats.

    Example:
        >>> list(unknown_options("csv", ["Header", "delimeter", "parquet.block.size"]))
        [('delimeter', "did you mean 'delimiter'?")]
    """
    if format_ not in _OF_FORMATS:
        return
    known = (_EACH + _OF_FORMATS[format_]).split()
    lower = {name.lower() for name in known}
    for name in names:
        if name.lower() not in lower and "." not in name:
            yield name, suggestion(name, known)


_BY_CLASS = {
    "ParquetHiveSerDe": "parquet",
    "MapredParquetInputFormat": "parquet",
    "OrcSerde": "orc",
    "OrcInputFormat": "orc",
    "AvroSerDe": "avro",
    "AvroContainerInputFormat": "avro",
    "JsonSerDe": "json",
    "OpenCSVSerde": "csv",
    "LazySimpleSerDe": "csv",
    "TextInputFormat": "csv",
}
"""Spark's format by the last part of the class."""

_OPTIONS = {
    "separatorChar": "sep",
    "quoteChar": "quote",
    "escapeChar": "escape",
    "field.delim": "sep",
    "serialization.format": "sep",
    "escape.delim": "escape",
    "serialization.null.format": "nullValue",
}
"""Option of Spark's CSV by the property of a SerDe."""

_TEXT = {"sep": "\x01", "nullValue": "\\N", "quote": "", "escape": "\\"}
"""How Hive writes text by default."""

_TEXTS_OF_HIVE = frozenset({"LazySimpleSerDe", "TextInputFormat", "textfile"})


TableFormat = Annotated[
    Literal["parquet", "orc", "csv", "json", "text", "textfile", "avro"], from_text(str.lower)
]


class HiveTable(Relation):
    """A table of the catalog, whose files are described as Hive does."""

    database: str | None = Declared(default=None, description="Database in the catalog.")
    table: str = Declared(description="Name in the catalog.")
    format: TableFormat | None = Declared(
        default=None, description="Format of the files; default: `parquet`. `textfile` is Hive's text."
    )
    row_format: str | None = Declared(
        default=None, description="Class of a Hive SerDe, whose format the files then have."
    )
    input_format: str | None = Declared(
        default=None, description="Class of a Hive input format, whose format the files then have."
    )
    output_format: str | None = Declared(
        default=None, description="Class of a Hive output format; the input format decides."
    )
    serde_properties: TextMap = Declared(
        default_factory=dict, description="Properties of the SerDe: separators, quotes, the text for null."
    )
    options: TextMap = Declared(default_factory=dict, description="Options of the format.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for kind, written in (("rowFormat", self.row_format), ("inputFormat", self.input_format)):
            if written is not None and _last(written) not in _BY_CLASS:
                raise ValueError(f"{kind} {written!r} is not supported; known are {', '.join(_BY_CLASS)}")
        if self.output_format is not None and self.row_format is None and self.input_format is None:
            raise ValueError("`outputFormat` needs `inputFormat` or `rowFormat`, by which files are read")
        return self

    @property
    def file_format(self) -> str:
        """Spark's format of the files."""
        return _BY_CLASS.get(self._described_by, self._described_by).replace("textfile", "csv")

    @property
    def file_options(self) -> dict[str, str]:
        """Spark's options for the files, with which it reads and writes them as Hive does."""
        own = {_OPTIONS[key]: text for key, text in self.serde_properties.items() if key in _OPTIONS}
        return {**(_TEXT if self._described_by in _TEXTS_OF_HIVE else {}), **own, **self.options}

    @property
    def _described_by(self) -> str:
        """What says which format the files have: a class of Hive, or the format itself."""
        return _last(self.row_format or self.input_format or self.format or "parquet")


def _last(name: str) -> str:
    return name.rpartition(".")[2]
