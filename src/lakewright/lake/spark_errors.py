"""Errors of Spark: their classes, and their messages without what only a parser of SQL needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
from lakewright.lake.storage_errors import damage_in_text, store_fault
from lakewright.spark.jvm import full_text
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


_GONE = ("[DELTA_PATH_DOES_NOT_EXIST]", "[DELTA_TABLE_NOT_FOUND]", "[PATH_NOT_FOUND]")


def is_entry_alone(error: BaseException) -> bool:
    """Return whether Spark says that only the catalog's entry is left of a Delta table."""
    return any(condition in first_line(error) for condition in _GONE)


def first_line(error: BaseException) -> str:
    """Return Spark's message without its SQLSTATE and position."""
    first = str(error).strip().partition("\n")[0]
    return re.sub(r"\s*(SQLSTATE: \w+)?[\s;.]*((\()?line \d+,? pos \d+(\))?)?;?$", "", first)


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
        if (missing := missing_reader(str(error))) is not None:
            raise missing from error
        raise SpecError.of(
            f"{subject}: Spark rejects it: {reason_with_position(error)}", location=locate(), remedy=remedy
        ) from error


Meaning = tuple[re.Pattern[str], Callable[[re.Match[str], str, str], LakewrightError | None]]
"""What Spark's text holds, and the error for it, made of the match, the text, and what went on meanwhile.

There may be none for the match after all.
"""

STORAGE = re.compile(
    r"No space left on device|Disk quota exceeded|File too large|Read-only file system|Input/output error|"
    r"Stale file handle|Transport endpoint is not connected|Remote I/O error"
)

_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\][^\n]*")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*$")
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+(?:Exception|Error): )?(.+)$", re.MULTILINE)
_JAVA = re.compile(r"(?:^|\n): (?:[\w.$]+(?:Exception|Error): )?([^\n]+)")
_FILE = re.compile(r"\[FAILED_READ_FILE[A-Z_.]*\] Encountered error while reading file (\S+?)\.? +SQLSTATE")
_CUT_OFF = re.compile(r"Unexpected end of (?:input stream|ZLIB)|Premature EOF")
_MISPACKED = re.compile(
    r"CRC failure|not a gzip file|incorrect (?:header|data|length) check|"
    r"invalid (?:distance|block|stored|code|bit|literal|window|header)|unknown compression method"
)
"""What Java says of a compressed file that is damaged."""
_RAW_RECORD = re.compile(r"\[MALFORMED_CSV_RECORD\] Malformed CSV record: (.*?) *SQLSTATE", re.DOTALL)
_RECORD = re.compile(
    r"Malformed records are detected in (?:record parsing: |schema inference\.\s*)(.*?)\.?\s+Parse Mode",
    re.DOTALL,
)
_VALUE = re.compile(
    r'For input string: "([^"]+)"|Text \'([^\']+)\' could not be parsed|'
    r"The value '([^']+)' of the type|cannot cast ([^\n]+?) to \w+"
)
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
    text = full_text(error)
    if (refusal := refusal_of(text)) is not None:
        return TargetError(refusal[0], remedy=f"{refusal[1]} Nothing was written.")
    if (misfit := fault_error(text)) is not None:
        in_mapping = "Convert it in the mapping, or declare a type that holds it. Nothing was written."
        is_of_file = "place" in misfit.details["fault"]
        return TargetError(
            misfit.message,
            remedy=misfit.remedy if is_of_file else in_mapping,
            details=misfit.details,
        )
    return translated(text, moment, (*EVERYWHERE, *_OF_QUERIES)) or TargetError(
        f"Spark failed {moment}: {condition(text)}",
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


def translated(text: str, moment: str, meanings: tuple[Meaning, ...]) -> LakewrightError | None:
    """Return the error for the first meaning that a text of Spark has; None if it has none of them."""
    for pattern, build in meanings:
        if (match := pattern.search(text)) and (found := build(match, text, moment)) is not None:
            return found
    return None


def condition(text: str) -> str:
    r"""Return the last error condition that a text of Spark names, or else its last cause or first line.

    Example:
        >>> condition("[OUTER] It failed. SQLSTATE: 1\nCaused by: [INNER] Division by zero. SQLSTATE: 2")
        '[INNER] Division by zero.'
        >>> condition("An error.\n: java.lang.RuntimeException: x\nCaused by: a.SQLException: no table")
        'no table'
    """
    if found := _CONDITION.findall(text):
        return _STATE.sub("", found[-1])
    if causes := _CAUSE.findall(text):
        return str(causes[-1])
    java = _JAVA.search(text)
    return java[1] if java else text.strip().partition("\n")[0]


def meaning(
    pattern: str | re.Pattern[str],
    kind: type[LakewrightError],
    message: str,
    remedy: str | None = None,
    **details: bool,
) -> Meaning:
    """Return the meaning of texts of Spark as an error.

    Args:
        pattern: A regular expression of the texts.
        kind: The class of the error.
        message: Its message, with `what` went on, the part that was `found`, and Spark's `condition`.
        remedy: Its remedy; by default that of the class.
        details: Its details.
    """

    def error(match: re.Match[str], text: str, what: str) -> LakewrightError:
        found = message.format(what=what, found=match[0], condition=condition(text))
        return kind(found, remedy=remedy, details=details)

    return re.compile(pattern), error


def _store_failed(match: re.Match[str], _text: str, moment: str) -> LakewrightError:
    """Return the error for an answer of an object store that is no fault of the rows."""
    found = store_fault(match[0])
    return StorageUnavailable(f"the object store failed {moment}: {found.reason}", remedy=found.remedy)


def _no_folder(match: re.Match[str], _text: str, moment: str) -> LakewrightError:
    """Return the error for a folder that can't be created or emptied; Hadoop does not say why."""
    found = {name: each for name, each in match.groupdict().items() if each}
    ((name, uri),) = found.items()
    place = _STATE.sub("", uri).partition("/_temporary/")[0].strip()
    done = "emptied" if name == "emptied" else "created"
    return StorageUnavailable(
        f"the storage failed {moment}: {local_path(place) or place} can't be {done}",
        remedy="Look whether the disk is full or read-only, and whether this user may write there, then run "
        "again; nothing is applied twice.",
    )


_CAUSES = re.compile(r"(?:\b[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error)): ")

_DENIED = "(Permission denied)"
_REFUSALS = (_DENIED, "(Operation not permitted)")


def _no_access(match: re.Match[str], text: str, moment: str) -> LakewrightError:
    """Return the error for a file or host that can't be reached: with its name, and why."""
    line = next((line for line in text.splitlines() if match[0] in line), match[0])
    # One line may hold the whole chain of causes, of which the last one is the file's.
    causes = list(_CAUSES.finditer(line))
    cause = causes[-1] if causes else None
    said = line.strip() if cause is None else line[cause.end() :].strip()
    refusal = next((each for each in _REFUSALS if each in said), None)
    if refusal is not None:
        said = said.partition(refusal)[0] + refusal
    elif cause is not None and cause[1].startswith("Access"):
        said = said if "denied" in said else f"{said} {_DENIED}"
    elif cause is not None:
        said = f"{cause[1]}: {said}"
    return StorageUnavailable(f"no access {moment}: {said}")


_NO_SOURCE = re.compile(r"[Ff]ailed to find (?:the )?data source:? \W?(\w+)")


def missing_reader(text: str) -> NotInstalled | None:
    """Return the error for a format that Spark has no reader of; None if a text of Spark names none."""
    found = _NO_SOURCE.search(text)
    if found is None:
        return None
    kind = found[1].lower()
    package = f"org.apache.spark:spark-{kind}_2.13:{installed_version()}" if kind == "avro" else "its package"
    return NotInstalled(
        f"this Spark can't read or write {kind} files",
        remedy=f"Add {package} to spark.jars.packages: in `config:` of the project, or where a session of "
        "your own is made.",
    )


EVERYWHERE: tuple[Meaning, ...] = (
    (MISSING_CLASS, lambda _match, text, _moment: missing_file_system(text)),
    (re.compile("_delta_log/"), lambda _match, text, _moment: damage_in_text(text)),
    # Rows of a checkpoint are kept on one executor; a task fails if it loses its executor four times.
    meaning(
        r"\[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND\]|Checkpoint block \S+ not found|"
        r"ExecutorLostFailure \(executor|FetchFailed\(|MetadataFetchFailedException",
        ExecutorLost,
        "an executor was lost {what}: {condition}",
    ),
    # The errors of Hadoop's file systems for object stores; what is not there, or already, is none of them.
    (
        re.compile(
            r"org\.apache\.hadoop\.fs\.s3a\.(?:auth\.)?(?:AWS|NoAws|NoAuth|Credential)\w*Exception[^\n]*|"
            r"[^\n]*\((?:Service: )?S3, Status Code: (?:400|403|5\d\d)[^\n]*|"
            r"software\.amazon\.awssdk\.core\.exception\.\w+Exception[^\n]*|"
            r"Operation failed: \"[^\n]*\", (?:-1|40[013]|5\d\d), [^\n]*|"
            r"org\.apache\.hadoop\.fs\.azurebfs\.\S*(?:Driver|Http|Provider)Exception[^\n]*|"
            r"com\.google\.cloud\.hadoop\.repackaged\.gcs\.\S+Exception: (?!40[49]|412)[^\n]*"
        ),
        _store_failed,
    ),
    meaning(
        STORAGE,
        StorageUnavailable,
        "the storage failed {what}: {found}",
        "Free space or repair the storage, then run again; nothing is applied twice.",
    ),
    # Names of Java's classes and its own form: a value of a row may hold the plain words.
    (
        re.compile(
            r"AccessControlException|AccessDeniedException|\((?:Permission denied|Operation not permitted)\)|"
            r"UnknownHostException|"
            r"java\.net\.(?:NoRouteToHost|Connect|SocketTimeout)Exception"
        ),
        _no_access,
    ),
    # Hadoop does not say why: a disk that is read-only or full, or a folder of another user.
    (
        re.compile(
            r"\[DELTA_CANNOT_CREATE_LOG_PATH\] Cannot create (?P<log>[^\n]+)|"
            r"java\.io\.IOException: Mkdirs failed to create (?P<folder>[^\n]+?) \(exists=|"
            r"SparkException: Unable to clear (?:output|partition) directory (?P<emptied>[^\n]+?) prior to"
        ),
        _no_folder,
    ),
    meaning(
        r"Concurrent\w*Exception|DELTA_CONCURRENT_\w+|DELTA_(?:METADATA|PROTOCOL)_CHANGED",
        CommitConflict,
        "another writer committed {what}: {condition}",
    ),
    (_NO_SOURCE, lambda _match, text, _moment: missing_reader(text)),
)
"""Failures of what a query depends on, whatever it computes."""


def _malformed(_match: re.Match[str], text: str, _moment: str) -> LakewrightError:
    record, file = _RAW_RECORD.search(text) or _RECORD.search(text), file_of(text)
    said = record[1].strip() if record else condition(text)
    if value := _VALUE.search(text):
        said = f"{said}, because of {next(filter(None, value.groups()))!r}"
    return TargetError(
        f"a record{f' of {file}' if file else ''} does not fit the columns of its relation: "
        f"{said[:_LONGEST]}{'…' if len(said) > _LONGEST else ''}",
        remedy="Correct the file or the declared schema, then run again. Options of the relation may help, "
        "such as `ignoreLeadingWhiteSpace` for spaces before values, or `mode: PERMISSIVE`, with which what "
        "does not fit is null.",
        details={"file": file} if file else {},
    )


def _of_file(text: str, what: str, remedy: str) -> TargetError:
    """Return the error of a file that a text of Spark names."""
    file = file_of(text)
    details = {"file": file} if file else {}
    return TargetError(f"{file or 'a file'} {what}", remedy=remedy, details=details)


def _unescaped(_match: re.Match[str], text: str, _moment: str) -> LakewrightError:
    remedy = 'Double it; or declare how the files are written, such as `options: {escape: "\\\\"}` of the '
    remedy += "relation for quotes after a backslash."
    return _of_file(text, "has a quote inside quotes that is not doubled", remedy)


def unreadable_reason(text: str) -> str:
    r"""Return why a file can't be read, as a text of Spark says: its own condition names only the file.

    Example:
        >>> unreadable_reason(
        ...     "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:/a.gz. SQLSTATE: 1\n"
        ...     "Caused by: java.io.EOFException: Unexpected end of input stream"
        ... )
        'the compressed file ends too early'
    """
    said, causes = condition(text), _CAUSE.findall(text)
    if not causes or not said.startswith("[FAILED_READ_FILE."):
        return said
    if _CUT_OFF.search(causes[-1]):
        return "the compressed file ends too early"
    return f"its compression is damaged ({causes[-1]})" if _MISPACKED.search(causes[-1]) else str(causes[-1])


def _unreadable(_match: re.Match[str], text: str, _moment: str) -> LakewrightError:
    remedy = (
        "Bring the file back or repair it, then run again. A table of the lake is made again by a rebuild, "
        "or by its job."
    )
    return _of_file(text, f"can't be read: {unreadable_reason(text)}", remedy)


def _other_type(match: re.Match[str], text: str, _moment: str) -> LakewrightError:
    said = re.search(r"column: (\S+), Expected: (.*?), Found: ([^.\s]+)", text)
    types = f"column {said[1]} is {said[3]}, not {said[2]}" if said else match[0]
    remedy = "Declare the types that the files have, and convert in a mapping; or write the files anew."
    return _of_file(text, f"does not have the declared types: {types}", remedy)


def file_of(text: str) -> str | None:
    """Return the file of which a text of Spark says that it can't be read; None if it names none."""
    found = _FILE.search(text)
    return found and str(local_path(found[1]) or found[1])


def _null(match: re.Match[str], _text: str, _moment: str) -> LakewrightError:
    return TargetError(
        f"column {match[1].rstrip('.')} has a null, which its table forbids (in a partition column, an empty "
        "text is null)",
        remedy="Give it a value in the mapping, or leave out such rows. Nothing was written.",
        details={"column": match[1].rstrip(".")},
    )


_MISSING_MODULE = (
    "Spark's Python processes import installed packages only: install this one where they run, or put the "
    "code into the file of the function; `spark.sparkContext.addPyFile(…)` sends a module to them."
)


def _of_python(match: re.Match[str], _text: str, _moment: str) -> LakewrightError:
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


_OF_QUERIES: tuple[Meaning, ...] = (
    meaning(
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING",
        TargetError,
        "several rows to merge match the same row of the table {what}",
        "Let the mapping return one row per key, with a deduplicate or latest mapping. Nothing was written.",
    ),
    (re.compile(r"Unescaped quote character"), _unescaped),
    (_RECORD, _malformed),
    (re.compile(r"NOT NULL constraint violated for column: (\S+)"), _null),
    (re.compile(r"PARQUET_COLUMN_DATA_TYPE_MISMATCH[^\n]*|PARQUET_TYPE_\w+[^\n]*"), _other_type),
    (re.compile(r"FAILED_READ_FILE|CANNOT_READ_FILE"), _unreadable),
    (
        re.compile(
            r"(?:PythonException|Python worker)[^\n]*?\s*Traceback \(most recent call last\):\n"
            r"(?P<frames>(?:[ \t]+[^\n]*\n)+)(?P<error>[^\n]+)"
        ),
        _of_python,
    ),
)
