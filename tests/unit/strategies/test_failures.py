"""`processing-strategies.md`, "Error Handling": what Spark says, as errors that say what to mend."""

from __future__ import annotations

from gzip import BadGzipFile

import pytest
from pyspark.errors import PySparkException
from tests.unit.schema.faults import raised

from lakewright.errors import (
    CommitConflict,
    ExecutorLost,
    LakewrightError,
    NotInstalled,
    SchemaDriftError,
    SliceError,
    StorageUnavailable,
    TargetError,
    UsageError,
)
from lakewright.lake.spark_errors import EVERYWHERE, translated
from lakewright.schema.fault import Fault, Reason
from lakewright.spec.models.entity import Entity
from lakewright.strategies.failures import translate_error

ENTITY = Entity.model_validate(
    {
        "id": "1",
        "name": "crm",
        "connection": "c",
        "processtype": "full",
        "columns": [{"name": "ratio", "expression": "a / b"}],
        "transformations": [["*", "upper(name) as name"]],
    }
)


class Failed(PySparkException):
    """An error of Spark whose session still runs."""


UNREAD = (
    "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///b/s1.csv.gz. SQLSTATE: KD001\n"
    "Caused by: "
)


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("[FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER] Could not read footer", SliceError, "s1"),
        ("java.io.FileNotFoundException: File file:/x does not exist", SliceError, "s1"),
        (
            f"{UNREAD}java.io.EOFException: Unexpected end of input stream",
            SliceError,
            "s1 of crm can't be read: /b/s1.csv.gz: the compressed file ends too early",
        ),
        (
            f"{UNREAD}java.io.IOException: gzip stream CRC failure",
            SliceError,
            "/b/s1.csv.gz: its compression is damaged (gzip stream CRC failure)",
        ),
        ("TextParsingException: Unescaped quote character '\"' inside quoted", SliceError, "Unescaped quote"),
        (
            "io.delta.exceptions.ConcurrentAppendException: Files were added",
            CommitConflict,
            "Files were added",
        ),
        ("[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] x", CommitConflict, "another writer committed"),
        (
            "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint short_v (length(v) < 5)",
            TargetError,
            "short_v",
        ),
        ("[COLUMN_ALREADY_EXISTS] The column `v` already exists.", SchemaDriftError, "`v`"),
        ("[CAST_OVERFLOW] The value 3000000000L of the type", SchemaDriftError, "3000000000L"),
        (
            "[DIVIDE_BY_ZERO] Division by zero.\n== SQL (line 1, position 1) ==\na / b\n^^^^^\n\n",
            TargetError,
            "'ratio'",
        ),
        (
            raised(Fault(Reason.NOT_WRITTEN_SO, "v", "int", "seven")),
            SchemaDriftError,
            "column 'v': the value 'seven' doesn't fit the type int",
        ),
        (
            "[TASK_WRITE_FAILED] x\nCaused by: java.io.IOException: File name too long",
            SchemaDriftError,
            "partition",
        ),
        (
            "[PARQUET_TYPE_ILLEGAL] Illegal Parquet type: INT64 (TIMESTAMP(NANOS,false))",
            SchemaDriftError,
            "NANOS",
        ),
        (
            "[TASK_WRITE_FAILED] x\nCaused by: java.io.IOException: No space left on device",
            StorageUnavailable,
            "No space left on device",
        ),
        (
            "java.nio.file.FileSystemException: a -> b: Input/output error",
            StorageUnavailable,
            "storage failed",
        ),
        (
            "[TASK_WRITE_FAILED] x\nCaused by: java.io.IOException: Mkdirs failed to create "
            "file:/lake/out/_temporary/0/_temporary/attempt_1 (exists=false, cwd=file:/work)",
            StorageUnavailable,
            ": /lake/out can't be created",
        ),
        (
            "[FAILED_READ_FILE] x\nCaused by: java.io.FileNotFoundException: /b/s1 (Permission denied)",
            StorageUnavailable,
            "/b/s1 (Permission denied)",
        ),
        (
            "An error occurred.\n: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 "
            "in stage 3.0 failed: Lost task 0.0 in stage 3.0 (TID 5) (host executor driver): "
            "java.io.FileNotFoundException: /lake/silver/part-0.parquet (Permission denied)",
            StorageUnavailable,
            "no access while the slice s1 of crm was processed: /lake/silver/part-0.parquet (Permission "
            "denied)",
        ),
        (
            "[X] x\nCaused by: java.io.FileNotFoundException: /lake/silver/_delta_log/.tmp (Operation not "
            "permitted)",
            StorageUnavailable,
            "processed: /lake/silver/_delta_log/.tmp (Operation not permitted)",
        ),
        (
            "[X] x\nCaused by: java.nio.file.AccessDeniedException: /lake/silver/_delta_log",
            StorageUnavailable,
            "processed: /lake/silver/_delta_log (Permission denied)",
        ),
        ("[FAILED_READ_FILE] x\nCaused by: java.net.UnknownHostException: s3", StorageUnavailable, "s3"),
        (
            "[FAILED_READ_FILE] x\nCaused by: org.apache.hadoop.fs.s3a.AWSBadRequestException: open s1: The "
            "provided token has expired. (Service: S3, Status Code: 400, Request ID: 1)",
            StorageUnavailable,
            "the credentials have expired",
        ),
        (
            '[FAILED_READ_FILE] x\nCaused by: Operation failed: "Server failed to authenticate.", '
            "403, GET, https://acme.dfs.core.windows.net/lake/s1, rId: 1, AuthenticationFailed",
            StorageUnavailable,
            "the credentials are refused (AuthenticationFailed)",
        ),
        (
            "[FAILED_READ_FILE] x\nCaused by: com.google.cloud.hadoop.repackaged.gcs.com.google.api.client."
            "googleapis.json.GoogleJsonResponseException: 403 Forbidden",
            StorageUnavailable,
            "access is denied",
        ),
        (
            "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_7_0 not found! Either the executor",
            ExecutorLost,
            "Checkpoint block rdd_7_0",
        ),
        (
            "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost "
            "task 0.3 in stage 3.0 (TID 9) (10.0.0.2 executor 1): ExecutorLostFailure (executor 1 exited "
            "unrelated to the running tasks) Reason: worker lost",
            ExecutorLost,
            "an executor was lost while the slice s1 of crm",
        ),
        ("something\nwith lines", TargetError, "something"),
        ("outer\nCaused by: x\n[INNER.ERROR] what it was", TargetError, "what it was"),
    ],
)
def test_what_was_said_becomes_an_error_of_ours(text: str, kind: type[LakewrightError], told: str) -> None:
    found = translate_error(RuntimeError(text), ENTITY, "s1")
    assert type(found) is kind
    assert told in found.message


@pytest.mark.parametrize(
    ("condition", "parameters", "kind", "told"),
    [
        ("_LEGACY_ERROR_TEMP_1139", {"provider": "avro"}, NotInstalled, "avro"),
        ("DATA_SOURCE_NOT_FOUND", {"provider": "foo"}, NotInstalled, "foo"),
        (
            "DELTA_CANNOT_CREATE_LOG_PATH",
            {"path": "file:/lake/gold/a b/_delta_log"},
            StorageUnavailable,
            "the slice s1 of crm was processed: /lake/gold/a b/_delta_log can't be created",
        ),
        (
            "_LEGACY_ERROR_TEMP_2056",
            {"staticPrefixPath": "file:/lake/out"},
            StorageUnavailable,
            ": /lake/out can't be emptied",
        ),
        (
            "FAILED_READ_FILE.NO_HINT",
            {"path": "file:///lake/silver/crm/part-0"},
            StorageUnavailable,
            "a file of the table /lake/silver/crm can't be read",
        ),
    ],
)
def test_a_condition_decides_with_its_parameters(
    condition: str, parameters: dict[str, str], kind: type[LakewrightError], told: str
) -> None:
    error = Failed("any text", errorClass=condition, messageParameters=parameters)
    found = translate_error(error, ENTITY, "s1", table="/lake/silver/crm")
    assert type(found) is kind
    assert told in found.message


def test_a_value_of_a_row_is_no_cause() -> None:
    """Words of Java that a record has decide nothing."""
    record = Failed(
        "java.net.ConnectException",
        errorClass="MALFORMED_CSV_RECORD",
        messageParameters={"badRecord": "java.net.ConnectException: No space left on device"},
    )
    assert isinstance(translate_error(record, ENTITY, "s1"), SliceError)


def test_a_damaged_file_of_the_table_is_not_the_slices() -> None:
    text = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///lake/{}/part-0. SQLSTATE"
    silver, bronze = (RuntimeError(text.format(layer)) for layer in ("silver/crm", "bronze/crm"))
    table = "/lake/silver/crm"
    assert "a file of the table" in translate_error(silver, ENTITY, "s1", table=table).message
    spaced = RuntimeError(
        "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file "
        "file:/my%20lake/silver/orders/day=1/part-0.parquet. File does not exist.\nNext. SQLSTATE: KD001"
        "\nCaused by: java.io.FileNotFoundException: File file:/my lake/silver/orders/day=1/part-0.parquet "
        "does not exist"
    )
    found = translate_error(spaced, ENTITY, "s1", table="/my lake/silver/orders")
    assert (type(found), found.message) == (
        StorageUnavailable,
        "a file of the table /my lake/silver/orders can't be read: File "
        "file:/my lake/silver/orders/day=1/part-0.parquet does not exist",
    )
    assert isinstance(translate_error(bronze, ENTITY, "s1", table=table), SliceError)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ExpiredToken", "Renew the credentials"),
        ("The provided token has expired.", "Renew the credentials"),
        ("RequestTimeTooSkewed: 900 s", "Set the clock"),
        ("InternalError", "Check the store"),
    ],
)
def test_what_to_do_about_a_store_follows_from_what_it_says(said: str, told: str) -> None:
    text = f"org.apache.hadoop.fs.s3a.AWSStatus500Exception: put: {said} (Service: S3, Status Code: 500)"
    assert told in str(translate_error(RuntimeError(text), ENTITY, "s1").remedy)


def test_errors_of_ours_stay() -> None:
    error = UsageError("x")
    assert translate_error(error, ENTITY, "s1") is error


def test_a_full_disk_during_a_rewind_is_named_with_the_command() -> None:
    """Issue 15: a full disk in the replay; an error of another cause stays as it is."""
    found = translated(
        RuntimeError("java.io.IOException: No space left on device"), "during `undo orders`", EVERYWHERE
    )
    assert isinstance(found, StorageUnavailable)
    assert found.message == "the storage failed during `undo orders`: No space left on device"
    assert "Free space or repair the storage, then run again" in str(found.remedy)
    assert translated(RuntimeError("division by zero"), "during `undo orders`", EVERYWHERE) is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError(13, "Permission denied", "/lake/silver/.t.lock"), StorageUnavailable),
        (OSError(28, "No space left on device", "/lake/quarantine/rows.json"), StorageUnavailable),
        (FileNotFoundError(2, "No such file or directory", "/bronze/s1.csv"), StorageUnavailable),
        (BadGzipFile("Not a gzipped file"), TargetError),
    ],
)
def test_what_the_operating_system_refuses_is_no_fault_of_the_slice(
    error: OSError, kind: type[Exception]
) -> None:
    """A slice that another user's folder or a full disk has stopped stays ready."""
    found = translate_error(error, ENTITY, "s1")
    assert type(found) is kind
    assert error.filename is None or error.filename in found.message
