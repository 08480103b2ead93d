"""The formats of Hive, by the classes of row formats (SerDes) and input formats, as formats of Spark."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["hive_options", "spark_format"]

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


def spark_format(format_name: str | None, row_format: str | None, input_format: str | None) -> str:
    """Return Spark's format of a table's files.

    Raises:
        ValueError: A class is not known.
    """
    for kind, written in (("rowFormat", row_format), ("inputFormat", input_format)):
        if written is not None:
            name = written.rpartition(".")[2]
            if name not in _BY_CLASS:
                raise ValueError(f"{kind} {written!r} is not supported; known are {', '.join(_BY_CLASS)}")
            return _BY_CLASS[name]
    return "csv" if format_name == "textfile" else format_name or "parquet"


def hive_options(
    format_name: str | None, row_format: str | None, input_format: str | None, properties: Mapping[str, str]
) -> dict[str, str]:
    """Return the options with which Spark reads and writes the files as Hive does.

    Example:
        >>> hive_options(None, "org.apache.hadoop.hive.serde2.OpenCSVSerde", None, {"separatorChar": ";"})
        {'sep': ';'}
    """
    name = (row_format or "").rpartition(".")[2]
    is_text = name == "LazySimpleSerDe" or (
        not name and (format_name == "textfile" or (input_format or "").endswith(".TextInputFormat"))
    )
    own = {_OPTIONS[key]: text for key, text in properties.items() if key in _OPTIONS}
    return {**_TEXT, **own} if is_text else own
