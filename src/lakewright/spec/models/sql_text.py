"""Marks of the fields that hold Spark's SQL, so that `validate` can check every such text.

A field is marked by annotation: `sql: Annotated[str, SqlText.QUERY]`. The mark applies to all texts of the
field's value. SQL of other databases has no mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from pydantic import BaseModel

__all__ = ["SqlText", "sql_texts"]


class SqlText(StrEnum):
    """The part of Spark's SQL that a text is."""

    QUERY = "query"
    EXPRESSION = "expression"
    CONDITION = "condition"

    def as_query(self, text: str, table: str) -> str:
        """Return a query that is valid exactly if the text is, over the rows of a table."""
        if self is SqlText.QUERY:
            return text
        # The text comes last, so that the parser's message about its end says so.
        parts = ["SELECT * WHERE", text] if self is SqlText.CONDITION else ["SELECT", text]
        return " ".join(["FROM", table, *parts])


def sql_texts(
    model: BaseModel, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[SqlText, str, tuple[str | int, ...]]]:
    """Yield every text of SQL in a model and the models inside it, with what it is and its path."""
    for name, field in type(model).model_fields.items():
        mark = next((each for each in field.metadata if isinstance(each, SqlText)), None)
        yield from _texts(getattr(model, name), mark, (*path, field.alias or name))


def _texts(
    value: Any, mark: SqlText | None, path: tuple[str | int, ...]
) -> Iterator[tuple[SqlText, str, tuple[str | int, ...]]]:
    if isinstance(value, str):
        if mark is not None and value.strip():
            yield mark, value, path
    elif isinstance(value, BaseModel):
        yield from sql_texts(value, path)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, mark, (*path, str(key)))
    elif isinstance(value, tuple | list):
        for index, inner in enumerate(value):
            yield from _texts(inner, mark, (*path, index))
