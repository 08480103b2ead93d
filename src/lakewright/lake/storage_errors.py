"""Errors of storages and of damaged Delta tables, as errors that say what, where and what to do.

Neither Spark nor the `deltalake` package can read a table whose log is damaged; Spark reports a page of Java.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from lakewright.errors import LakewrightError, MigrationError, StorageUnavailable, TargetError
from lakewright.errors.phrase import Command, Phrase, ShellLine
from lakewright.lake.paths import is_stored, local_path, split_url
from lakewright.plan.observation import Observation
from lakewright.plan.resource import canonical_scheme
from lakewright.spec.words import counted

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_OPENED = re.compile(r"Unable to (?:open|access) (?:file|dir|directory) (?P<path>\S.*)")
_NUMBER = re.compile(r" ?\(os error \d+\)")


def storage_error(error: OSError, what: str) -> StorageUnavailable:
    """Return the error that something can't be read or written.

    Args:
        error: From Python, or from the `deltalake` package, which puts path and reason into several lines.
        what: The thing and what can't be done with it, such as `the table /lake/t can't be read`.
    """
    return StorageUnavailable(f"{what}: {_reason(error)}", remedy=_remedy(error))


@contextmanager
def accessing(what: str) -> Iterator[None]:
    """Raise the `storage_error` of an error of the operating system in the `with` block."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, what) from error


@dataclass(frozen=True, slots=True)
class StoreFault:
    """Why an object store could not be used, in words, and what to do."""

    reason: str
    remedy: str


def store_fault(text: str) -> StoreFault:
    """Return what an error of an object store, or of a client of it, means.

    The store's code is kept; a text that is not known is given as it is, in one line.

    Example:
        >>> store_fault("<Code>RequestTimeTooSkewed</Code><Message>The difference is too large</Message>")
        StoreFault(reason='the clock of this machine is wrong (RequestTimeTooSkewed)', \
remedy='Set the clock of this machine (NTP), then run again.')
    """
    said = _one_line(text)
    for pattern, reason, remedy in _STORE_FAULTS:
        if found := re.search(pattern, text):
            code = next((part for part in found.groups() if part), "")
            return StoreFault(f"{reason} ({code})" if code else reason, f"{remedy}, then run again.")
    return StoreFault(said, f"{_CHECK}; then run again.")


_CHECK = "Check the store, the credentials and their rights, and the `storage:` section"

_KEYS = (
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AZURE_STORAGE_ACCOUNT_KEY or "
    "GOOGLE_APPLICATION_CREDENTIALS, or declare `credentials` in the `storage:` section"
)

_DENIED, _RIGHTS = "access is denied", "Give the credentials the right to list, read and write there"

# The codes of the stores, and the words of the clients: `obstore` and `deltalake` (Rust), Hadoop's (Java).
_STORE_FAULTS = (
    (
        r"(Expired\w*|InvalidToken)|token.{0,20} expired",
        "the credentials have expired",
        "Renew the credentials, which have expired",
    ),
    (
        r"(RequestTimeTooSkewed)|Request date header too old",
        "the clock of this machine is wrong",
        "Set the clock of this machine (NTP)",
    ),
    (
        r"169\.254\.1(?:69\.254|70\.2)|IMDS|while loading credentials|NoAuthWithAWSException|"
        r"No AWS Credentials|Unable to load credentials|metadata\.google|Application Default Credentials|"
        r"default credentials were not found|MsiTokenProvider",
        "no credentials were found in the project, the environment or the role of this machine",
        _KEYS,
    ),
    (
        r"(InvalidAccessKeyId|SignatureDoesNotMatch|AuthorizationHeaderMalformed|AuthenticationFailed|"
        r"InvalidAuthenticationInfo|AADSTS\d+|invalid_(?:client|grant))",
        "the credentials are refused",
        "Correct the credentials, or the region in the `storage:` section",
    ),
    (
        r"(NoSuchBucket|UnknownBucket\w*|ContainerNotFound|FilesystemNotFound)",
        "there is no such bucket",
        "Create the bucket, or correct the location",
    ),
    (
        r"(AccessDenied\w*|AllAccessDisabled|AuthorizationFailure|AuthorizationPermissionMismatch)",
        _DENIED,
        _RIGHTS,
    ),
    (r"\b403 Forbidden|Status Code: 403", _DENIED, _RIGHTS),
    (
        r"error sending request|dns error|Connection refused|ConnectException|UnknownHostException|"
        r"SocketTimeout|operation timed out|Unable to execute HTTP request",
        "the store does not answer",
        "Check the network, and `endpoint_url` in the `storage:` section",
    ),
)


DENIED = ("Permission denied", "Operation not permitted")
"""What the operating system says of a file that a user may not read or write, or nobody may change."""


def _one_line(text: str) -> str:
    """Return what an error says, in one line, without colours and the client's debug output."""
    line = " ".join(_COLOUR.sub("", text).replace("↳", " ").split())
    if found := re.search(r"<Code>(.*?)</Code>(?:.*?<Message>(.*?)</Message>)?", line):
        return ": ".join(part for part in found.groups() if part)
    return line.partition(" Debug source:")[0][:300]


def _reason(error: OSError) -> str:
    if error.strerror is not None:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    lines = [line.strip(" ↳\t") for line in _COLOUR.sub("", str(error)).splitlines()]
    said = [_NUMBER.sub("", line) for line in lines if line]
    path = next((found["path"] for line in said if (found := _OPENED.search(line))), None)
    last = said[-1] if said else type(error).__name__
    return f"{path}: {last}" if path is not None and path not in last else last


def _remedy(error: OSError) -> str | None:
    said = str(error)
    is_denied = isinstance(error, PermissionError) or any(words in said for words in DENIED)
    return "Give the user who runs Lakewright access to it, then run again." if is_denied else None


DAMAGED = "damaged_log"
"""The entry of an error's details that names the table whose log is damaged."""

IN_PLACE = "file_in_place"
"""The entry of an error's details that names a file which stands where a table's folder belongs."""

LACKS = "missing_files"
"""The entry of an error's details that has the data files which a table lacks."""

_COMMIT = re.compile(r"\d{20}\.json")


def damaged_commits(names: Iterable[str], read: Callable[[str], bytes | None]) -> Iterator[tuple[str, str]]:
    """Yield the commits of a log that are no lines of JSON, or that are missing, each with which it is.

    Args:
        names: The names of the files of the log.
        read: Returns the content of such a file; None if it can't be read.
    """
    former: int | None = None
    for name in sorted(filter(_COMMIT.fullmatch, names)):
        number = int(name.removesuffix(".json"))
        if former is not None and number > former + 1:
            yield f"{former + 1:020d}.json", "missing"
        if not _is_readable(read(name)):
            yield name, "damaged"
        former = number


def _is_readable(content: bytes | None) -> bool:
    try:
        lines = [] if content is None else content.decode("utf-8").splitlines()
        return bool(lines) and all(isinstance(json.loads(text), dict) for text in lines if text.strip())
    except ValueError:
        return False


def damaged_log_error(table: str, files: Sequence[tuple[str, str]]) -> TargetError:
    """Return the error for a table that has files of its log at fault, of which there is at least one.

    Args:
        table: Its folder.
        files: Their names, each with `damaged` or `missing`.
    """
    name, fault = files[0]
    message = f"the table {table} can't be read: its log file {name} is {fault}"
    return _unreadable(message, table, files=[each for each, _ in files])


def _unreadable(message: str, table: str, **details: object) -> TargetError:
    remedy = Phrase("Restore the file from a copy. Without one, ", _made_again(table))
    return TargetError(message, remedy=remedy, details={DAMAGED: table, **details})


def damaged_log_file(path: str) -> TargetError | None:
    """Return the error for a file that Spark could not read; None unless it is one of a table's log."""
    table, found, name = path.partition("/_delta_log/")
    return damaged_log_error(str(local_path(table) or table), ((name, "damaged"),)) if found else None


def failed_observation(subject: str, error: LakewrightError) -> Observation:
    """Return the observation of what could not be looked at; it warns if a table is damaged or in the way."""
    warning = None
    if DAMAGED in error.details or IN_PLACE in error.details:
        warning = replace(error.as_fault(), message=f"the run will fail: {error.message}")
    return Observation(subject, error=error.message, warning=warning)


def lost_log_error(table: str) -> MigrationError:
    """Return the error for a folder that has the files of a table, but no log.

    Args:
        table: The folder.
    """
    return MigrationError(
        f"{table} has files of rows, but no Delta log: it is not a Delta table",
        remedy=Phrase(
            "If it is a table, bring its folder _delta_log back from a copy. Without one, ",
            _made_again(table),
            " If other files are there, declare another place.",
        ),
        details={DAMAGED: table},
    )


def file_in_place_error(table: str, file: str) -> TargetError:
    """Return the error for a file that stands where a table's folder belongs, or a folder above it.

    Args:
        table: The folder of the table.
        file: The file.
    """
    which = "the table's folder" if file == table else f"the folder of the table {table}"
    moving = ShellLine(f"mv {shlex.quote(file)} {shlex.quote(f'{file}.moved')}")
    return TargetError(
        f"a file stands at {file}, where {which} belongs",
        remedy=Phrase(
            "Move the file away: ",
            moving,
            ". Then bring the folder back if it was moved, or make the table again.",
        ),
        details={IN_PLACE: file},
    )


def lost_files_error(table: str, files: Sequence[str]) -> TargetError:
    """Return the error for a table that lacks data files, of which there is at least one.

    Args:
        table: Its folder.
        files: The names of the files.
    """
    lacks = f"it lacks {counted(len(files), 'data file')}, such as {files[0]}"
    message = f"the table {table} can't be read as a whole: {lacks}"
    return _unreadable(message, table, **{LACKS: list(files)})


_MOVES = {"s3": "aws s3 mv --recursive", "abfs": "hadoop fs -mv", "gs": "gcloud storage mv"}
"""The command that moves a folder of an object store, by scheme; Azure's own takes no URL."""


def _made_again(table: str) -> str:
    command = _MOVES[canonical_scheme(split_url(table)[0])] if is_stored(table) else "mv"
    return Phrase(
        "move the folder away, ",
        ShellLine(f"{command} {shlex.quote(table)} {shlex.quote(f'{table}.damaged')}"),
        ", and make the table again: that of an entity by ",
        Command("rebuild", "ENTITY", "--yes"),
        ", any other by the job that builds it, for each of its instances.",
    )
