"""Errors of Spark: their classes, and their messages without what only a parser of SQL needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from lakewright.errors import (
    CommitConflict,
    ExecutorLost,
    LakewrightError,
    Location,
    NotInstalled,
    SpecError,
    StorageUnavailable,
    TargetError,
)
from lakewright.errors.phrase import Option, Phrase
from lakewright.lake.files import MISSING_CLASS, missing_file_system
from lakewright.lake.paths import local_path
from lakewright.lake.storage_errors import damaged_log_file, store_fault
from lakewright.spark.causes import (
    Cause,
    causes_of,
    first_line,
    innermost,
    raised_text,
    said_of,
)
from lakewright.spark.releases import installed_version
from lakewright.transform.fault_words import fault_error
from lakewright.transform.refusals import refusal_of


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the classes of errors that reading a version may raise."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JJavaError
    except ImportError:  # PySpark's client for Spark Connect lacks it
        return (PySparkException,)
    return (PySparkException, Py4JJavaError)


def analysis_error() -> type[Exception]:
    """Return the class of errors in a query or an expression: its syntax, and names that do not exist."""
    from pyspark.errors import AnalysisException

    return AnalysisException


_GONE = ("DELTA_PATH_DOES_NOT_EXIST", "DELTA_TABLE_NOT_FOUND", "PATH_NOT_FOUND")


def is_entry_alone(error: BaseException) -> bool:
    """Return whether Spark says that only the catalog's entry is left of a Delta table."""
    return innermost(causes_of(error), *_GONE) is not None


def reason_with_position(error: BaseException) -> str:
    """Return Spark's message, and where in the text of the query the fault is.

    Example:
        >>> reason_with_position(ValueError("no column `idd`. SQLSTATE: 42703; line 2 pos 7;"))
        'no column `idd` (line 2, column 8 of the text)'
    """
    first = str(error).strip().partition("\n")[0]
    found = re.search(r"line (\d+),? pos (\d+)", first)
    if found is None:
        return first_line(error)
    return f"{first_line(error).rstrip('.')} (line {found[1]}, column {int(found[2]) + 1} of the text)"


@contextmanager
def located_rejection(subject: str, locate: Callable[[], Location | None], remedy: str) -> Iterator[None]:
    """Raise what Spark's analysis finds in a query or an expression as an error of the declaration.

    Errors of the declaration that have no place get that of the definition.

    Args:
        subject: What is declared there, as messages name it.
        locate: Returns the place of the declaration.
        remedy: What to correct.

    Raises:
        SpecError: Spark rejects the query or the expression.
        NotInstalled: Spark lacks the package of a format.
    """
    try:
        yield
    except SpecError as error:
        raise error.placed(subject, locate()) from error.__cause__
    except analysis_error() as error:
        if (missing := translated(error, "", _READERS)) is not None:
            raise missing from error
        said = f"Spark rejects it: {reason_with_position(error)}"
        raise SpecError.of(said, location=locate(), remedy=remedy, subject=subject) from error


Build = Callable[[Cause, Sequence[Cause], str], LakewrightError | None]
"""Returns our error for a cause, given the whole chain and what went on; there may be none after all."""


class Meanings(NamedTuple):
    """What errors of Spark, Delta and Java mean.

    Attributes:
        conditions: By a condition of Spark or Delta; what has none of its own has that of the part before the
            full stop.
        java: For errors without a condition: by a pattern that their class or message holds. Its groups, and
            the text that was `found`, are the parameters of the cause.
    """

    conditions: Mapping[str, Build]
    java: Mapping[str, Build]

    def error(self, causes: Sequence[Cause], moment: str) -> LakewrightError | None:
        """Return our error for the innermost cause that has a meaning; None if none has one."""
        made = (build(cause, causes, moment) for each in reversed(causes) for cause, build in self._of(each))
        return next(filter(None, made), None)

    def _of(self, cause: Cause) -> Iterator[tuple[Cause, Build]]:
        if cause.condition:
            names = (cause.condition, cause.condition.partition(".")[0])
            yield from ((cause, self.conditions[name]) for name in names if name in self.conditions)
            return
        for pattern, build in self.java.items():
            if match := re.search(pattern, str(cause)):
                yield replace(cause, parameters={**match.groupdict(""), "found": match[0]}), build


_LONGEST = 200
"""Characters of a record that an error shows."""


def message_of(error: Exception, moment: str) -> str:
    """Return what any error says, on one line: one of Lakewright, of Spark, or of Python.

    Args:
        error: What was raised.
        moment: What went on, such as `while target 'regions' ran BUILD`.
    """
    if isinstance(error, LakewrightError):
        return error.message
    if isinstance(error, analysis_error()):
        return f"Spark rejects it: {first_line(error)}"
    if (failure := query_failure(error, moment)) is not None:
        return failure.message
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def query_failure(error: BaseException, moment: str) -> LakewrightError | None:
    """Return the error for a query of Spark that failed; None if the error is not Spark's.

    Args:
        error: What was raised.
        moment: What went on, such as `while target 'regions' ran BUILD`.
    """
    if type(error).__module__.partition(".")[0] not in ("py4j", "pyspark"):
        return None
    causes = causes_of(error)
    raised = raised_text(causes)
    if (refusal := refusal_of(raised)) is not None:
        return TargetError(refusal[0], remedy=f"{refusal[1]} Nothing was written.")
    if (misfit := fault_error(raised)) is not None:
        in_mapping = "Convert it in the mapping, or declare a type that holds it. Nothing was written."
        is_of_file = "place" in misfit.details["fault"]
        return TargetError(
            misfit.message,
            remedy=misfit.remedy if is_of_file else in_mapping,
            details=misfit.details,
        )
    return translated(error, moment, EVERYWHERE, _OF_QUERIES) or TargetError(
        f"Spark failed {moment}: {said_of(causes)}",
        remedy=Phrase(
            "Correct the query or its inputs, then run again; ", Option("-vv"), " shows all that Spark says."
        ),
    )


@contextmanager
def translated_failures(moment: str) -> Iterator[None]:
    """Raise what fails in the block in Spark, or in a database, as an error that names the cause.

    Args:
        moment: What goes on in the block, such as `while relation 'x' was read`.

    Raises:
        LakewrightError: For each error of Spark's.
    """
    try:
        yield
    except Exception as error:
        failure = None if isinstance(error, LakewrightError) else query_failure(error, moment)
        if failure is None:
            raise
        raise failure from error


def translated(error: BaseException, moment: str, *tables: Meanings) -> LakewrightError | None:
    """Return our error for what an error of Spark means by the first table that has it; None if none has."""
    causes = causes_of(error)
    return next(filter(None, (each.error(causes, moment) for each in tables)), None)


def plain(kind: type[LakewrightError], message: str, remedy: str | None = None) -> Build:
    """Return what makes an error of a cause.

    Args:
        kind: The class of the error.
        message: Its message, with `what` went on, what Spark has `said`, and parameters of the cause.
        remedy: Its remedy; by default that of the class.
    """

    def build(cause: Cause, causes: Sequence[Cause], moment: str) -> LakewrightError:
        parts = {**cause.parameters, "what": moment, "said": said_of(causes)}
        return kind(message.format_map(parts), remedy=remedy)

    return build


def _store_failed(cause: Cause, _causes: Sequence[Cause], moment: str) -> LakewrightError:
    """Return the error for an answer of an object store that is no fault of the rows."""
    fault = store_fault(cause.message)
    return StorageUnavailable(f"the object store failed {moment}: {fault.reason}", remedy=fault.remedy)


def _no_folder(cause: Cause, _causes: Sequence[Cause], moment: str) -> LakewrightError:
    """Return the error for a folder that can't be created or emptied; Hadoop does not say why."""
    path = cause.parameters.get("path", cause.parameters.get("staticPrefixPath", ""))
    place = path.partition("/_temporary/")[0]
    return StorageUnavailable(
        f"the storage failed {moment}: {local_path(place) or place or 'a folder'} can't be "
        f"{'emptied' if cause.condition in _NOT_EMPTIED else 'created'}",
        remedy="Look whether the disk is full or read-only, and whether this user may write there, then run "
        "again; nothing is applied twice.",
    )


_NOT_EMPTIED = ("_LEGACY_ERROR_TEMP_2056", "_LEGACY_ERROR_TEMP_2057")

_KINDS = re.compile(r"(?:\b[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error)): ")

_DENIED = "(Permission denied)"
_REFUSALS = (_DENIED, "(Operation not permitted)")


def _no_access(cause: Cause, _causes: Sequence[Cause], moment: str) -> LakewrightError:
    """Return the error for a file or host that can't be reached: with its name, and why."""
    line = next(line for line in str(cause).splitlines() if cause.parameters["found"] in line)
    # One line may hold the whole chain of causes, of which the last one is the file's.
    kinds = list(_KINDS.finditer(line))
    kind = kinds[-1] if kinds else None
    said = line.strip() if kind is None else line[kind.end() :].strip()
    refusal = next((each for each in _REFUSALS if each in said), None)
    if refusal is not None:
        said = said.partition(refusal)[0] + refusal
    elif kind is not None and kind[1].startswith("Access"):
        said = said if "denied" in said else f"{said} {_DENIED}"
    elif kind is not None:
        said = f"{kind[1]}: {said}"
    return StorageUnavailable(f"no access {moment}: {said}")


def _missing_reader(cause: Cause, _causes: Sequence[Cause], _moment: str) -> LakewrightError:
    """Return the error for a format that Spark has no reader of."""
    kind = cause.parameters.get("provider", "such").lower()
    package = f"org.apache.spark:spark-{kind}_2.13:{installed_version()}" if kind == "avro" else "its package"
    return NotInstalled(
        f"this Spark can't read or write {kind} files",
        remedy=f"Add {package} to spark.jars.packages: in `config:` of the project, or where a session of "
        "your own is made.",
    )


def _damaged_log(cause: Cause, _causes: Sequence[Cause], _moment: str) -> LakewrightError | None:
    return damaged_log_file(cause.parameters.get("path", ""))


# The legacy ones are of Avro and of Kafka, which are not among Spark's own jars.
_READERS = Meanings(
    dict.fromkeys(
        ("DATA_SOURCE_NOT_FOUND", "_LEGACY_ERROR_TEMP_1139", "_LEGACY_ERROR_TEMP_1140"), _missing_reader
    ),
    {},
)

# A task fails if it loses its executor four times; rows of a checkpoint are kept on one executor.
_lost = plain(ExecutorLost, "an executor was lost {what}: {said}")
_conflict = plain(CommitConflict, "another writer committed {what}: {said}")

EVERYWHERE = Meanings(
    {
        **_READERS.conditions,
        "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND": _lost,
        "DELTA_CANNOT_CREATE_LOG_PATH": _no_folder,
        "DELTA_CONCURRENT_APPEND": _conflict,
        "DELTA_CONCURRENT_DELETE_DELETE": _conflict,
        "DELTA_CONCURRENT_DELETE_READ": _conflict,
        "DELTA_CONCURRENT_TRANSACTION": _conflict,
        "DELTA_CONCURRENT_WRITE": _conflict,
        "DELTA_METADATA_CHANGED": _conflict,
        "DELTA_PROTOCOL_CHANGED": _conflict,
        "FAILED_READ_FILE": _damaged_log,
        **dict.fromkeys(_NOT_EMPTIED, _no_folder),
    },
    {
        MISSING_CLASS: lambda cause, _causes, _moment: missing_file_system(cause.message),
        r"Checksum error: (?P<path>\S+)": _damaged_log,
        r"Checkpoint block \S+ not found|ExecutorLostFailure \(executor|FetchFailed\(|"
        r"MetadataFetchFailedException": _lost,
        # Errors of Hadoop's file systems for object stores; what is not there, or already, is none of them.
        r"org\.apache\.hadoop\.fs\.s3a\.(?:auth\.)?(?:AWS|NoAws|NoAuth|Credential)\w*Exception|"
        r"\((?:Service: )?S3, Status Code: (?:400|403|5\d\d)|"
        r"software\.amazon\.awssdk\.core\.exception\.\w+Exception|"
        r"Operation failed: \"[^\n]*\", (?:-1|40[013]|5\d\d), |"
        r"org\.apache\.hadoop\.fs\.azurebfs\.\S*(?:Driver|Http|Provider)Exception|"
        r"com\.google\.cloud\.hadoop\.repackaged\.gcs\.\S+Exception: (?!40[49]|412)": _store_failed,
        r"No space left on device|Disk quota exceeded|File too large|Read-only file system|"
        r"Input/output error|Stale file handle|Transport endpoint is not connected|Remote I/O error": plain(
            StorageUnavailable,
            "the storage failed {what}: {found}",
            "Free space or repair the storage, then run again; nothing is applied twice.",
        ),
        r"AccessControlException|AccessDeniedException|\((?:Permission denied|Operation not permitted)\)|"
        r"UnknownHostException|"
        r"java\.net\.(?:NoRouteToHost|Connect|SocketTimeout)Exception": _no_access,
        # Hadoop does not say why: a disk that is read-only or full, or a folder of another user.
        r"Mkdirs failed to create (?P<path>[^\n]+?) \(exists=": _no_folder,
        # Delta's store for S3 reports a conflict by a class of Java's own.
        r"Concurrent\w*Exception": _conflict,
    },
)
"""Failures of what a query depends on, whatever it computes."""


_TEXTS_OF_VALUES = re.compile(r"For input string: \"([^\"]+)\"|Text '([^']+)' could not be parsed")
_PARAMETERS_OF_VALUES = ("fieldValue", "expression")


def _malformed(cause: Cause, causes: Sequence[Cause], _moment: str) -> LakewrightError:
    file, said = file_of(causes), cause.parameters.get("badRecord", "").strip() or cause.said
    if value := _value(causes):
        said = f"{said}, because of {value!r}"
    return TargetError(
        f"a record{f' of {file}' if file else ''} does not fit the columns of its relation: "
        f"{said[:_LONGEST]}{'…' if len(said) > _LONGEST else ''}",
        remedy="Correct the file or the declared schema, then run again. Options of the relation may help, "
        "such as `ignoreLeadingWhiteSpace` for spaces before values, or `mode: PERMISSIVE`, with which what "
        "does not fit is null.",
        details={"file": file} if file else {},
    )


def _value(causes: Sequence[Cause]) -> str | None:
    """Return the value for which a record does not fit, as the innermost cause that names one has it."""
    for cause in reversed(causes):
        named = [cause.parameters[name] for name in _PARAMETERS_OF_VALUES if cause.parameters.get(name)]
        match = _TEXTS_OF_VALUES.search(cause.message)
        if found := [*named, *(filter(None, match.groups()) if match else ())]:
            return str(found[0]).strip("'")
    return None


def _of_file(causes: Sequence[Cause], what: str, remedy: str) -> TargetError:
    """Return the error of a file that one of the causes names."""
    file = file_of(causes)
    details = {"file": file} if file else {}
    return TargetError(f"{file or 'a file'} {what}", remedy=remedy, details=details)


def _unescaped(_cause: Cause, causes: Sequence[Cause], _moment: str) -> LakewrightError:
    remedy = 'Double it; or declare how the files are written, such as `options: {escape: "\\\\"}` of the '
    remedy += "relation for quotes after a backslash."
    return _of_file(causes, "has a quote inside quotes that is not doubled", remedy)


_CUT_OFF = re.compile(r"Unexpected end of (?:input stream|ZLIB)|Premature EOF")
_MISPACKED = re.compile(
    r"CRC failure|not a gzip file|incorrect (?:header|data|length) check|"
    r"invalid (?:distance|block|stored|code|bit|literal|window|header)|unknown compression method"
)
"""What Java says of a compressed file that is damaged."""


def unreadable_reason(causes: Sequence[Cause]) -> str:
    """Return why a file can't be read: the condition of Spark names only the file.

    Example:
        >>> failed = Cause("org.apache.spark.SparkException", "FAILED_READ_FILE.NO_HINT", "Encountered error")
        >>> unreadable_reason([failed, Cause("java.io.EOFException", "", "Unexpected end of input stream")])
        'the compressed file ends too early'
    """
    last = causes[-1]
    conditions = [each for each in causes if each.condition]
    if last.condition or not (conditions and conditions[-1].has("FAILED_READ_FILE")):
        return said_of(causes)
    if _CUT_OFF.search(last.message):
        return "the compressed file ends too early"
    return f"its compression is damaged ({last.said})" if _MISPACKED.search(last.message) else last.said


def _unreadable(_cause: Cause, causes: Sequence[Cause], _moment: str) -> LakewrightError:
    remedy = (
        "Bring the file back or repair it, then run again. A table of the lake is made again by a rebuild, "
        "or by its job."
    )
    return _of_file(causes, f"can't be read: {unreadable_reason(causes)}", remedy)


def _other_type(cause: Cause, causes: Sequence[Cause], _moment: str) -> LakewrightError:
    column, own, wanted = map(cause.parameters.get, ("column", "actualType", "expectedType"))
    types = f"column {column} is {own}, not {wanted}" if column else cause.said
    remedy = "Declare the types that the files have, and convert in a mapping; or write the files anew."
    return _of_file(causes, f"does not have the declared types: {types}", remedy)


def file_of(causes: Sequence[Cause]) -> str | None:
    """Return the file of which Spark says that it can't be read; None if it names none."""
    cause = innermost(causes, "FAILED_READ_FILE")
    path = None if cause is None else cause.parameters.get("path")
    return None if not path else str(local_path(path) or path)


def _null(cause: Cause, _causes: Sequence[Cause], _moment: str) -> LakewrightError:
    column = cause.parameters.get("columnName", "")
    return TargetError(
        f"column {column} has a null, which its table forbids (in a partition column, an empty text is null)",
        remedy="Give it a value in the mapping, or leave out such rows. Nothing was written.",
        details={"column": column},
    )


_MISSING_MODULE = (
    "Spark's Python processes import installed packages only: install this one where they run, or put the "
    "code into the file of the function; `spark.sparkContext.addPyFile(…)` sends a module to them."
)

_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\):\n(?P<frames>(?:[ \t]+[^\n]*\n)+)(?P<error>[^\n]+)"
)


def _of_python(cause: Cause, _causes: Sequence[Cause], _moment: str) -> LakewrightError | None:
    match = _TRACEBACK.search(cause.message)
    if match is None:
        return None
    lines = re.findall(r'File "([^"]+)", line (\d+), in ([^\n]+)', match["frames"])
    place = f" ({lines[-1][0]}, line {lines[-1][1]}, in {lines[-1][2].strip()})" if lines else ""
    return TargetError(
        f"a Python function failed: {match['error'].strip()}{place}",
        remedy=_MISSING_MODULE
        if match["error"].startswith("ModuleNotFoundError")
        else Phrase(
            "Correct the function or its input, then run again; ", Option("-vv"), " shows its traceback."
        ),
    )


_OF_QUERIES = Meanings(
    {
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE": plain(
            TargetError,
            "several rows to merge match the same row of the table {what}",
            "Let the mapping return one row per key, with a deduplicate or latest mapping. Nothing was "
            "written.",
        ),
        "DELTA_NOT_NULL_CONSTRAINT_VIOLATED": _null,
        "FAILED_READ_FILE": _unreadable,
        "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH": _other_type,
        "MALFORMED_CSV_RECORD": _malformed,
        "MALFORMED_RECORD_IN_PARSING": _malformed,
        "PARQUET_TYPE_ILLEGAL": _other_type,
        "PARQUET_TYPE_NOT_RECOGNIZED": _other_type,
        "PARQUET_TYPE_NOT_SUPPORTED": _other_type,
        "PYTHON_EXCEPTION": _of_python,
    },
    {"Unescaped quote character": _unescaped, r"PythonException|Python worker": _of_python},
)
"""Failures of the work itself, with how it becomes right."""
