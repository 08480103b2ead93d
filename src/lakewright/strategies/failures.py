"""Translation of errors of Spark and Delta into errors that name the cause and the remedy.

Source: `processing-strategies.md`, "Error Handling".
"""

from __future__ import annotations

import re
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
    Meaning,
    condition,
    file_of,
    translated,
    unreadable_reason,
)
from lakewright.manifest.payload import MAY_SKIP
from lakewright.spark.jvm import full_text, is_jvm_failure, jvm_failure
from lakewright.strategies.outdated import rebuild_command
from lakewright.transform.fault_words import fault_error
from lakewright.transform.pipeline import expressions_of
from lakewright.transform.steps import expression_error

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity


_FRAGMENT = re.compile(r"== SQL[^\n]*==\n(.*?)\n[\s^]*\n", re.DOTALL)
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\][^\n]*")


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
    text = full_text(error)
    found: LakewrightError | None = (
        fault_error(text, rebuild_command(entity))
        or _expression_error(text, entity)
        or _table_error(text, table, entity)
    )
    if found is not None:
        return found
    what = f"slice {slice_name} of {entity.name}"
    found = translated(text, f"while the {what} was processed", EVERYWHERE)
    found = found or translated(text, what, _MEANINGS)
    return found or TargetError(f"the {what} could not be processed: {condition(text)}")


def _expression_error(text: str, entity: Entity) -> TargetError | None:
    """Return the error for an expression of the entity, if Spark's error points to one."""
    fragment = _FRAGMENT.search(text)
    if fragment is None or not fragment[1].strip():
        return None
    for column, expression in expressions_of(entity):
        if fragment[1].strip() in expression:
            return expression_error(column, expression, RuntimeError(condition(text)))
    return None


def _table_error(text: str, table: str, entity: Entity) -> StorageUnavailable | None:
    """Return the error for a file of the table that cannot be read, if that is the cause."""
    # Spark writes some paths as URIs, in which a space is %20, and others as they are.
    conditions = [unquote(line) for line in _CONDITION.findall(text) if "READ_FILE" in line]
    file = re.search(rf"{re.escape(table)}/(\S+?)\.?(?:\s|$)", "\n".join(conditions)) if table else None
    if file is None:
        return None
    why = unreadable_reason(text)
    return StorageUnavailable(
        f"a file of the table {table} can't be read: {why if file[1] in why else f'{file[1]}: {why}'}",
        remedy=Phrase(
            "Bring the file back, then run again; or ",
            rebuild_command(entity),
            " builds the table again from its slices.",
        ),
    )


def _unreadable(_match: re.Match[str], text: str, what: str) -> LakewrightError:
    file, why = file_of(text), unreadable_reason(text)
    return SliceError(
        f"the {what} can't be read: {why if file is None or file in why else f'{file}: {why}'}",
        remedy="Deliver it again.",
        details={MAY_SKIP: True},
    )


def _meaning(pattern: str, kind: type[LakewrightError], message: str, remedy: str | None = None) -> Meaning:
    """Return the meaning of texts of Spark as an error.

    Args:
        pattern: A regular expression of the texts.
        kind: The class of the error.
        message: Its message, with `what` failed, the part that was `found`, and Spark's `condition`.
        remedy: Its remedy; by default that of the class.
    """

    def error(match: re.Match[str], text: str, what: str) -> LakewrightError:
        found = message.format(what=what, found=match[0], condition=condition(text))
        return kind(found, remedy=remedy)

    return re.compile(pattern), error


_MEANINGS: tuple[Meaning, ...] = (
    _meaning(
        r"\[DELTA_(?:VIOLATE|NOT_NULL)_CONSTRAINT\w*\][^\n]*",
        TargetError,
        "a row of the {what} breaks a constraint of the table: {found}",
        "Correct the slice.",
    ),
    _meaning(
        r"COLUMN_ALREADY_EXISTS",
        SchemaDriftError,
        "the {what} has columns whose names differ by case only: {condition}",
        "Rename one of them in the source.",
    ),
    (
        re.compile(
            r"FAILED_READ_FILE|CANNOT_READ_FILE|FileNotFoundException|PATH_NOT_FOUND|MALFORMED_(?:RECORD|CSV)|"
            r"is not a Parquet file|UNABLE_TO_INFER_SCHEMA|INVALID_PARQUET|ChecksumException|CORRUPT|"
            r"Unescaped quote character"
        ),
        _unreadable,
    ),
    _meaning(
        r"[Ff]ile ?name too long",
        SchemaDriftError,
        "the {what} has a value in a partition column that is too long for the name of a folder",
    ),
    _meaning(
        r"PARQUET_TYPE_(?:ILLEGAL|NOT_SUPPORTED|NOT_RECOGNIZED)|UNSUPPORTED_TIME_TYPE",
        SchemaDriftError,
        "the {what} has a column of a type that Spark doesn't read: {condition}",
        "Write times in microseconds (pandas: to_parquet(…, coerce_timestamps='us')), and other types in one "
        "that Spark has.",
    ),
    _meaning(
        r"CAST_INVALID_INPUT|CAST_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE",
        SchemaDriftError,
        "a value of the {what} doesn't fit its column: {condition}",
    ),
)
