"""Errors of the operating system about files, as errors that say what, where and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lakewright.errors import StorageUnavailable

__all__ = ["StoreFault", "reading", "storage_error", "store_fault"]

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
def reading(what: str) -> Iterator[None]:
    """Raise `StorageUnavailable` for an error of the operating system in the `with` block."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, f"{what} can't be read") from error


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

_KEYS = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or declare `credentials` in `storage: {s3: …}`"

_DENIED, _RIGHTS = "access is denied", "Give the credentials the right to list, read and write there"

# The codes of S3, and the words of the clients: `obstore` and `deltalake` (Rust), Hadoop's `s3a` (Java).
_STORE_FAULTS = (
    (
        r"(Expired\w*|InvalidToken)|token.{0,20} expired",
        "the credentials have expired",
        "Renew the credentials, which have expired",
    ),
    (
        r"(RequestTimeTooSkewed)",
        "the clock of this machine is wrong",
        "Set the clock of this machine (NTP)",
    ),
    (
        r"169\.254\.1(?:69\.254|70\.2)|IMDS|while loading credentials|NoAuthWithAWSException|"
        r"No AWS Credentials|Unable to load credentials",
        "no credentials were found in the project, the environment or the role of this machine",
        _KEYS,
    ),
    (
        r"(InvalidAccessKeyId|SignatureDoesNotMatch|AuthorizationHeaderMalformed)",
        "the credentials are refused",
        "Correct the credentials, or the region in the `storage:` section",
    ),
    (
        r"(NoSuchBucket|UnknownBucket\w*)",
        "there is no such bucket",
        "Create the bucket, or correct the location",
    ),
    (r"(AccessDenied\w*|AllAccessDisabled)", _DENIED, _RIGHTS),
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
