"""Translation of errors of Spark and Delta into errors that name the cause and the remedy.

Source: `processing-strategies.md`, "Error Handling".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakewright.errors import (
    CommitConflict,
    ExecutorLost,
    LakewrightError,
    NotInstalled,
    SchemaDriftError,
    SliceError,
    StorageUnavailable,
    TargetError,
)
from lakewright.lake.storage_errors import store_fault
from lakewright.manifest.payload import MAY_SKIP
from lakewright.spark.jvm import full_text
from lakewright.transform.casts import cast_error
from lakewright.transform.pipeline import expressions_of
from lakewright.transform.steps import expression_error

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity

__all__ = ["storage_error", "translate_error"]

_FRAGMENT = re.compile(r"== SQL[^\n]*==\n(.*?)\n[\s^]*\n", re.DOTALL)
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\][^\n]*")
_STORAGE = re.compile(
    r"No space left on device|Disk quota exceeded|File too large|Read-only file system|Input/output error"
)


def translate_error(error: Exception, entity: Entity, slice_name: str, *, table: str = "") -> LakewrightError:
    """Return the error to raise for an error that occurred while a slice was processed.

    Args:
        error: The error; one of Lakewright's own is returned unchanged.
        entity: The entity.
        slice_name: Name of the slice.
        table: Path of its table, to distinguish a damaged file of the table from one of the slice.
    """
    if isinstance(error, LakewrightError):
        return error
    text = full_text(error)
    found = cast_error(text) or _expression_error(text, entity) or _table_error(text, table)
    if found is not None:
        return found
    for pattern, build in _MEANINGS:
        if match := pattern.search(text):
            return build(match, text, f"slice {slice_name} of {entity.name}")
    return TargetError(f"the slice {slice_name} of {entity.name} could not be processed: {_condition(text)}")


def storage_error(error: Exception, doing: str) -> LakewrightError | None:
    """Return the error for a storage that failed while something was done to a table; None if it did not.

    Args:
        error: An error of Spark.
        doing: What was done, such as `undo orders`.
    """
    if isinstance(error, LakewrightError):
        return None
    found = _STORAGE.search(full_text(error))
    return found and StorageUnavailable(
        f"the storage failed during `{doing}`: {found[0]}",
        remedy="Free space or repair the storage, then type the command again.",
    )


def _expression_error(text: str, entity: Entity) -> TargetError | None:
    """Return the error for an expression of the entity, if Spark's error points to one."""
    fragment = _FRAGMENT.search(text)
    if fragment is None or not fragment[1].strip():
        return None
    for column, expression in expressions_of(entity):
        if fragment[1].strip() in expression:
            return expression_error(column, expression, RuntimeError(_condition(text)))
    return None


def _table_error(text: str, table: str) -> StorageUnavailable | None:
    """Return the error for a file of the table that cannot be read, if that is the cause."""
    conditions = [line for line in _CONDITION.findall(text) if "READ_FILE" in line and table in line]
    if not table or not conditions:
        return None
    return StorageUnavailable(
        f"a file of the table {table} can't be read: {conditions[-1]}",
        remedy="Bring the file back, or restore an earlier version of the table; then run again.",
    )


def _conflict(_match: re.Match[str], text: str, what: str) -> LakewrightError:
    return CommitConflict(f"another writer committed at the same time as the {what}: {_first_line(text)}")


def _lost_executor(_match: re.Match[str], text: str, what: str) -> LakewrightError:
    return ExecutorLost(f"an executor was lost while the {what} was processed: {_condition(text)}")


def _store_failed(match: re.Match[str], _text: str, what: str) -> LakewrightError:
    """Return the error for an answer of an object store that is no fault of the slice."""
    found = store_fault(match[0])
    return StorageUnavailable(
        f"the object store failed while the {what} was processed: {found.reason}", remedy=found.remedy
    )


def _no_storage(match: re.Match[str], _text: str, what: str) -> LakewrightError:
    return StorageUnavailable(
        f"the storage failed while the {what} was processed: {match[0]}",
        remedy="Free space or repair the storage, then run again. The slice is applied exactly once.",
    )


def _no_access(match: re.Match[str], text: str, what: str) -> LakewrightError:
    line = next((line for line in text.splitlines() if match[0] in line), match[0])
    return StorageUnavailable(f"no access while the {what} was processed: {line.strip()}")


def _broken_constraint(match: re.Match[str], _text: str, what: str) -> LakewrightError:
    return TargetError(
        f"a row of the {what} breaks a constraint of the table: {match[0]}",
        remedy="Correct the slice, then resolve the item.",
    )


def _doubled_name(_match: re.Match[str], text: str, what: str) -> LakewrightError:
    return SchemaDriftError(
        f"the {what} has columns whose names differ by case only: {_condition(text)}",
        remedy="Rename one of them in the source.",
    )


def _other_header(match: re.Match[str], _text: str, what: str) -> LakewrightError:
    """Return the error for a CSV header that differs from the slice's columns."""
    names = [name.strip() for name in match["header"].split(",")]
    known = [name.lower() for name in names]
    doubled = dict.fromkeys(name for name in names if name and known.count(name.lower()) > 1)
    if doubled:
        return SchemaDriftError(
            f"the header of the {what} has a name more than once: {', '.join(map(repr, doubled))}",
            remedy="Rename one of them in the source, whatever their case.",
        )
    if "" in names:
        return SchemaDriftError(
            f"the header of the {what} has no name for column {names.index('') + 1}",
            remedy="Name it in the source, or leave it out (pandas: to_csv(…, index=False)).",
        )
    return SchemaDriftError(
        f"files of the {what} have several headers: {match['file']} has {match['header']!r}, "
        f"not {match['schema']!r}",
        remedy="Give all files of a slice the same columns in the same order.",
    )


def _no_reader(match: re.Match[str], _text: str, _what: str) -> LakewrightError:
    return NotInstalled(
        f"this Spark has no reader of {match[1].lower()} files",
        remedy="Add it, as in config: spark.jars.packages=org.apache.spark:spark-avro_2.13:4.2.0.",
    )


def _unreadable(_match: re.Match[str], text: str, what: str) -> LakewrightError:
    return SliceError(
        f"the {what} can't be read: {_condition(text)}",
        remedy="Deliver it again, then resolve the item.",
        details={MAY_SKIP: True},
    )


def _too_fine(_match: re.Match[str], text: str, what: str) -> LakewrightError:
    return SchemaDriftError(
        f"the {what} has a column of a type that Spark doesn't read: {_condition(text)}",
        remedy="Write times in microseconds (pandas: to_parquet(…, coerce_timestamps='us')), and other types "
        "in one that Spark has.",
    )


def _too_long(_match: re.Match[str], _text: str, what: str) -> LakewrightError:
    return SchemaDriftError(
        f"the {what} has a value in a partition column that is too long for the name of a folder",
        remedy="Partition by another column, or by an expression that shortens it.",
    )


def _misfit(_match: re.Match[str], text: str, what: str) -> LakewrightError:
    return SchemaDriftError(f"a value of the {what} doesn't fit its column: {_condition(text)}")


def _condition(text: str) -> str:
    """Return the last error condition that the text names, or its first line if it names none."""
    found = _CONDITION.findall(text)
    return found[-1] if found else _first_line(text)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


_MEANINGS = (
    # Rows of a checkpoint are kept on one executor; a task fails if it loses its executor four times.
    (
        re.compile(
            r"\[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND\]|Checkpoint block \S+ not found|"
            r"ExecutorLostFailure \(executor|FetchFailed\(|MetadataFetchFailedException"
        ),
        _lost_executor,
    ),
    # The errors of Hadoop's file system for S3; what is not there is none of them.
    (
        re.compile(
            r"org\.apache\.hadoop\.fs\.s3a\.(?:auth\.)?(?:AWS|NoAws|NoAuth|Credential)\w*Exception[^\n]*|"
            r"[^\n]*\((?:Service: )?S3, Status Code: (?:400|403|5\d\d)[^\n]*|"
            r"software\.amazon\.awssdk\.core\.exception\.\w+Exception[^\n]*"
        ),
        _store_failed,
    ),
    (_STORAGE, _no_storage),
    # Names of Java's classes and its own form: a value of the slice may hold the plain words.
    (
        re.compile(
            r"AccessControlException|AccessDeniedException|\(Permission denied\)|UnknownHostException|"
            r"java\.net\.(?:NoRouteToHost|Connect|SocketTimeout)Exception"
        ),
        _no_access,
    ),
    (
        re.compile(r"Concurrent\w*Exception|DELTA_CONCURRENT_\w+|DELTA_(?:METADATA|PROTOCOL)_CHANGED"),
        _conflict,
    ),
    (re.compile(r"\[DELTA_(?:VIOLATE|NOT_NULL)_CONSTRAINT\w*\][^\n]*"), _broken_constraint),
    (re.compile(r"COLUMN_ALREADY_EXISTS"), _doubled_name),
    (
        re.compile(
            r"CSV header does not conform to the schema\.\n Header: (?P<header>.*)\n Schema: (?P<schema>.*)\n"
            r"(?:.*\n)?CSV file: (?P<file>.*)"
        ),
        _other_header,
    ),
    (re.compile(r"[Ff]ailed to find (?:the )?data source:? \W?(\w+)"), _no_reader),
    (
        re.compile(
            r"FAILED_READ_FILE|CANNOT_READ_FILE|FileNotFoundException|PATH_NOT_FOUND|MALFORMED_(?:RECORD|CSV)|"
            r"is not a Parquet file|UNABLE_TO_INFER_SCHEMA|INVALID_PARQUET|ChecksumException|CORRUPT|"
            r"Unescaped quote character"
        ),
        _unreadable,
    ),
    (re.compile(r"[Ff]ile ?name too long"), _too_long),
    (re.compile(r"PARQUET_TYPE_(?:ILLEGAL|NOT_SUPPORTED|NOT_RECOGNIZED)|UNSUPPORTED_TIME_TYPE"), _too_fine),
    (re.compile(r"CAST_INVALID_INPUT|CAST_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE"), _misfit),
)
