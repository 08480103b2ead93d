"""Marks of fields whose texts `validate` can check: Spark's SQL, and files that the project must have.

A field is marked by annotation: `sql: Annotated[str, SqlText.QUERY]`. The mark applies to all texts of the
field's value. SQL of other databases has no mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=StrEnum)


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


class FileText(StrEnum):
    """The path of a file, which is relative to the project's folder."""

    OF_PROJECT = "of project"


def marked_texts(
    model: BaseModel, kind: type[M], path: tuple[str | int, ...] = ()
) -> Iterator[tuple[M, str, tuple[str | int, ...]]]:
    """Yield every text with a mark of a kind in a model and the models inside it, with its path."""
    for name, field in type(model).model_fields.items():
        mark = next((each for each in field.metadata if isinstance(each, kind)), None)
        yield from _texts(getattr(model, name), kind, mark, (*path, field.alias or name))


def _texts(
    value: Any, kind: type[M], mark: M | None, path: tuple[str | int, ...]
) -> Iterator[tuple[M, str, tuple[str | int, ...]]]:
    if isinstance(value, str):
        if mark is not None and value.strip():
            yield mark, value, path
    elif isinstance(value, BaseModel):
        yield from marked_texts(value, kind, path)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, kind, mark, (*path, str(key)))
    elif isinstance(value, tuple | list):
        for index, inner in enumerate(value):
            yield from _texts(inner, kind, mark, (*path, index))
