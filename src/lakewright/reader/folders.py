"""Columns that the folders of files stand for, as in `plant=007/part-1.csv`.

Their values are texts: a type inferred from them would depend on which values one slice has, and would change
some. Folders without a `=` are just folders.

Source: the rules of reading, "Places"; Hive's names of partitions, in which signs are written as `%2F`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lakewright.lake.partition import NULL_FOLDER
from lakewright.reader.source import Source
from lakewright.schema.sql import name_sql, text_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["folder_columns", "folder_values", "with_folder_columns"]

_SCHEME = "[A-Za-z][A-Za-z0-9+.-]*:/+"
_SCALARS = frozenset(("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "boolean"))
_SCALARS |= {"string", "date", "timestamp", "timestamp_ntz"}


def folder_values(name: str) -> dict[str, str | None]:
    """Return the columns of the folders in a file's path, with their values.

    Raises:
        ValueError: A folder's name is not text, or two of them are of one column.

    Example:
        >>> folder_values("plant=007/05/at=12%3A30/code=__HIVE_DEFAULT_PARTITION__/part=1.csv")
        {'plant': '007', 'at': '12:30', 'code': None}
    """
    found: dict[str, str | None] = {}
    for folder in name.split("/")[:-1]:
        column, sign, text = folder.partition("=")
        if not (column and sign):
            continue
        try:
            column, value = unquote(column, errors="strict"), unquote(text, errors="strict")
        except UnicodeDecodeError:
            raise ValueError(f"the name of the folder {folder} has signs of an encoding but UTF-8") from None
        if column.lower() in {each.lower() for each in found}:
            raise ValueError(f"{name}: two folders are of the column {column!r}")
        found[column] = None if text == NULL_FOLDER else value
    return found


def folder_columns(source: Source) -> Mapping[str, frozenset[str]]:
    """Return the columns of a source's folders, with all ways in which folders write their names.

    Raises:
        LakewrightError: A folder's name is not text, or a path has two folders of one column.
    """
    spelled: dict[str, set[str]] = {}
    names: dict[str, str] = {}
    for folder in sorted({file.name.rpartition("/")[0] for file in source.files if "=" in file.name}):
        try:
            columns = folder_values(f"{folder}/")
        except ValueError as error:
            raise source.error(str(error), "Rename the folder, then resolve the item.") from error
        for column in columns:
            spelled.setdefault(names.setdefault(column.lower(), column), set())
        for part in folder.split("/"):
            written, sign, _ = part.partition("=")
            if written and sign:
                spelled[names[unquote(written).lower()]].add(written)
    return {column: frozenset(texts) for column, texts in spelled.items()}


def with_folder_columns(frame: DataFrame, source: Source) -> DataFrame:
    """Return the rows of a source with the columns of its folders.

    A column that the files have too keeps their values, and the query fails if a folder has another one.

    Args:
        frame: The rows, as a scan or projections of one.
        source: The source.
    """
    columns = folder_columns(source)
    if not columns:
        return frame
    own = {field.name.lower(): field for field in frame.schema.fields}
    found = []
    for column, written in columns.items():
        value = _value_sql(source.place, written)
        field = own.get(column.lower())
        kind = "void" if field is None else field.dataType.simpleString()
        if field is None or kind == "void":
            found.append((column if field is None else field.name, value))
            continue
        if kind.partition("(")[0] not in _SCALARS:
            raise source.error(
                f"column {column!r} is of type {kind} in the files, and folders have its values, too",
                "Rename the column in the files, or the folders; then resolve the item.",
            )
        found.append((field.name, _checked_sql(name_sql(field.name), kind, value, column)))
    from pyspark.sql import functions

    return frame.withColumns({name: functions.expr(sql) for name, sql in found})


def _checked_sql(own: str, kind: str, folder: str, column: str) -> str:
    """Return SQL of a file's own value, which fails where its folder has another one."""
    same = f"{own} <=> {folder}" if kind == "string" else f"{own} <=> try_cast({folder} as {kind})"
    told = (
        f"concat({text_sql(f'column {column!r} has the value ')}, coalesce(cast({own} as string), 'null'), "
    )
    told += "' in the file ', input_file_name(), ', and its folder another one')"
    return f"if({same}, {own}, cast(raise_error({told}) as {kind}))"


def _value_sql(place: str, written: Iterable[str]) -> str:
    """Return SQL of the value that a row's folder has of a column; null if there is no such folder."""
    # The path of a file has its signs encoded, and `url_decode` takes `+` for a space.
    path = "url_decode(replace(input_file_name(), '+', '%2B'))"
    parts = [part for part in re.sub(f"^{_SCHEME}", "", place).split("/") if part]
    below = f"regexp_replace({path}, {text_sql(f'^{_SCHEME}(?:[^/]+/+){{{len(parts)}}}')}, '/')"
    names = "|".join(sorted(map(re.escape, written)))
    folder = f"regexp_substr({below}, {text_sql(f'/(?:{names})=[^/]*(?=/)')})"
    value = f"substring({folder}, instr({folder}, '=') + 1)"
    lone = text_sql("%(?![0-9A-Fa-f]{2})")  # a percent sign that encodes nothing
    text = f"url_decode(replace(regexp_replace({value}, {lone}, '%25'), '+', '%2B'))"
    return f"if({value} = {text_sql(NULL_FOLDER)}, null, {text})"
