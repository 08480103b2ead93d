"""The options of Spark's readers and writers of files, to find misspelt ones, which Spark ignores.

Source: `CSVOptions`, `JSONOptions`, `ParquetOptions`, `OrcOptions`, `TextOptions` and the options of file
sources of Spark 4.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
