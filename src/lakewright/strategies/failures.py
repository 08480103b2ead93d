"""What Spark and Delta say when something fails, as errors that name what to mend.

Source: `processing-strategies.md`, "Error Handling".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakewright.errors import CommitConflict, LakewrightError, NotInstalled, SchemaDriftError, SliceError, TargetError
from lakewright.transform.casts import cast_error
from lakewright.transform.pipeline import expressions_of
from lakewright.transform.steps import expression_error

if TYPE_CHECKING:
    from lakewright.spec.entity import Entity

__all__ = ["full_text", "translated"]

_CONFLICTS = re.compile(
    r"Concurrent\w*Exception|DELTA_CONCURRENT_\w+|DELTA_METADATA_CHANGED|DELTA_PROTOCOL_CHANGED"
)
_CONSTRAINT = re.compile(
    r"\[(?:DELTA_VIOLATE_CONSTRAINT_WITH_VALUES|DELTA_NOT_NULL_CONSTRAINT_VIOLATED|DELTA_VIOLATE\w*)\][^\n]*"
)
_UNREADABLE = re.compile(
    r"FAILED_READ_FILE|CANNOT_READ_FILE|FileNotFoundException|PATH_NOT_FOUND|MALFORMED_(?:RECORD|CSV)|is not a Parquet file|"
    r"UNABLE_TO_INFER_SCHEMA|INVALID_PARQUET|ChecksumException|CORRUPT"
)
_FRAGMENT = re.compile(r"== SQL[^\n]*==\n(.*?)\n[\s^]*\n", re.DOTALL)
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\][^\n]*")


def translated(error: Exception, entity: Entity, slice_name: str) -> LakewrightError:
    """Return the error of ours that says what an error met while processing a slice means."""
    if isinstance(error, LakewrightError):
        return error
    text = full_text(error)
    found = cast_error(text) or _of_expression(text, entity, error)
    if found is not None:
        return found
    if _CONFLICTS.search(text):
        return CommitConflict(
            f"another writer committed to the table of {entity.name} at the same time: {_first(text)}"
        )
    if constraint := _CONSTRAINT.search(text):
        return TargetError(
            f"a row of the slice {slice_name} breaks a constraint of the table: {constraint[0]}",
            remedy="Correct the slice, then resolve the item.",
        )
    if "COLUMN_ALREADY_EXISTS" in text:
        return SchemaDriftError(
            f"the slice {slice_name} has columns whose names differ by case only: {_said(text)}",
            remedy="Rename one of them in the source.",
        )
    if "find data source" in text:
        return NotInstalled(
            f"this Spark has no reader of {entity.bronze_format} files",
            remedy="Add it, as in config: spark.jars.packages=org.apache.spark:spark-avro_2.13:4.2.0.",
        )
    if _UNREADABLE.search(text):
        return SliceError(
            f"the slice {slice_name} can't be read: {_said(text)}",
            remedy="Deliver it again, then resolve the item; or skip it.",
        )
    if "CAST_INVALID_INPUT" in text or "CAST_OVERFLOW" in text or "NUMERIC_VALUE_OUT_OF_RANGE" in text:
        return SchemaDriftError(f"a value of the slice {slice_name} doesn't fit its column: {_said(text)}")
    return TargetError(f"the slice {slice_name} could not be processed: {_said(text)}")


def full_text(error: BaseException) -> str:
    """Return all that an error says, with what the JVM says about its causes."""
    stack = getattr(error, "_stackTrace", None)
    return f"{error}\n{stack}" if isinstance(stack, str) else str(error)


def _of_expression(text: str, entity: Entity, error: Exception) -> TargetError | None:
    """The error for an expression of the entity, if Spark points to one."""
    fragment = _FRAGMENT.search(text)
    if fragment is None:
        return None
    for column, expression in expressions_of(entity):
        if fragment[1].strip() and fragment[1].strip() in expression:
            return expression_error(column, expression, RuntimeError(_said(text)))
    return None


def _said(text: str) -> str:
    """What is most telling: the last of the conditions that causes name, else the first line."""
    conditions = _CONDITION.findall(text)
    return conditions[-1] if conditions else _first(text)


def _first(text: str) -> str:
    return text.strip().partition("\n")[0]
