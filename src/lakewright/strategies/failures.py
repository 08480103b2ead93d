"""Translation of errors of Spark and Delta into errors that name the cause and the remedy.

Source: `processing-strategies.md`, "Error Handling".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lakewright.errors import (
    LakewrightError,
    SchemaDriftError,
    SliceError,
    StorageUnavailable,
    TargetError,
)
from lakewright.errors.phrase import Phrase
from lakewright.lake.spark_errors import (
    EVERYWHERE,
    Meanings,
    file_of,
    plain,
    translated,
    unreadable_reason,
)
from lakewright.lake.storage_errors import storage_error
from lakewright.manifest.payload import MAY_SKIP
from lakewright.spark.causes import Cause, causes_of, raised_text, said_of
from lakewright.spark.jvm import is_jvm_failure, jvm_failure
from lakewright.strategies.outdated import rebuild_command
from lakewright.transform.fault_words import fault_error
from lakewright.transform.pipeline import expressions_of
from lakewright.transform.steps import expression_error

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity


def translate_error(error: Exception, entity: Entity, slice_name: str, *, table: str = "") -> LakewrightError:
    """Return the error to raise for an error that occurred while a slice was processed.

    Args:
        error: The error; one of Lakewright's own is returned unchanged, unless the JVM has failed.
        entity: The entity.
        slice_name: Name of the slice.
        table: Path of its table, to distinguish a damaged file of the table from one of the slice.
    """
    if is_jvm_failure(error):
        return jvm_failure(slice_name, error)
    if isinstance(error, LakewrightError):
        return error
    what, causes = f"slice {slice_name} of {entity.name}", causes_of(error)
    found: LakewrightError | None = (
        fault_error(raised_text(causes), rebuild_command(entity))
        or _expression_error(causes, entity)
        or _table_error(causes, table, entity)
    )
    if found is not None:
        return found
    if isinstance(error, OSError) and error.errno is not None:  # readers of damaged files give no number
        found = storage_error(error, f"the {what} could not be processed")
    else:
        found = (
            translated(error, f"while the {what} was processed", EVERYWHERE)
            or translated(error, what, _OF_SLICES)
            or TargetError(f"the {what} could not be processed: {said_of(causes)}")
        )
    found.subject = slice_name
    return found


def _expression_error(causes: Sequence[Cause], entity: Entity) -> TargetError | None:
    """Return the error for an expression of the entity, if Spark's error points to one."""
    fragments = [fragment for each in causes for fragment in each.fragments]
    for column, expression in expressions_of(entity):
        if any(fragment.strip() and fragment.strip() in expression for fragment in fragments):
            return expression_error(column, expression, RuntimeError(said_of(causes)))
    return None


def _table_error(causes: Sequence[Cause], table: str, entity: Entity) -> StorageUnavailable | None:
    """Return the error for a file of the table that cannot be read, if that is the cause."""
    # Spark writes some paths as URIs, in which a space is %20, and others as they are.
    _, found, file = unquote(file_of(causes) or "").partition(f"{table}/")
    if not table or not found:
        return None
    why = unreadable_reason(causes)
    return StorageUnavailable(
        f"a file of the table {table} can't be read: {why if file in why else f'{file}: {why}'}",
        remedy=Phrase(
            "Bring the file back, then run again; or ",
            rebuild_command(entity),
            " builds the table again from its slices.",
        ),
    )


def _unreadable(_cause: Cause, causes: Sequence[Cause], what: str) -> LakewrightError:
    file, why = file_of(causes), unreadable_reason(causes)
    return SliceError(
        f"the {what} can't be read: {why if file is None or file in why else f'{file}: {why}'}",
        remedy="Deliver it again.",
        details={MAY_SKIP: True},
    )


_unread_type = plain(
    SchemaDriftError,
    "the {what} has a column of a type that Spark doesn't read: {said}",
    "Write times in microseconds (pandas: to_parquet(…, coerce_timestamps='us')), and other types in one "
    "that Spark has.",
)
_misfit = plain(SchemaDriftError, "a value of the {what} doesn't fit its column: {said}")
_constraint = plain(
    TargetError, "a row of the {what} breaks a constraint of the table: {said}", "Correct the slice."
)

_OF_SLICES = Meanings(
    {
        "CAST_INVALID_INPUT": _misfit,
        "CAST_OVERFLOW": _misfit,
        "CAST_OVERFLOW_IN_TABLE_INSERT": _misfit,
        "COLUMN_ALREADY_EXISTS": plain(
            SchemaDriftError,
            "the {what} has columns whose names differ by case only: {said}",
            "Rename one of them in the source.",
        ),
        "DELTA_NOT_NULL_CONSTRAINT_VIOLATED": _constraint,
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES": _constraint,
        "FAILED_READ_FILE": _unreadable,
        "MALFORMED_CSV_RECORD": _unreadable,
        "MALFORMED_RECORD_IN_PARSING": _unreadable,
        "NUMERIC_VALUE_OUT_OF_RANGE": _misfit,
        "PARQUET_TYPE_ILLEGAL": _unread_type,
        "PARQUET_TYPE_NOT_RECOGNIZED": _unread_type,
        "PARQUET_TYPE_NOT_SUPPORTED": _unread_type,
        "PATH_NOT_FOUND": _unreadable,
        "UNABLE_TO_INFER_SCHEMA": _unreadable,
        "UNSUPPORTED_TIME_TYPE": _unread_type,
    },
    {
        r"FileNotFoundException|is not a Parquet file|ChecksumException|CORRUPT|"
        r"Unescaped quote character": _unreadable,
        r"[Ff]ile ?name too long": plain(
            SchemaDriftError,
            "the {what} has a value in a partition column that is too long for the name of a folder",
        ),
    },
)
"""Failures for which a slice is at fault."""
