"""Errors of the operating system about files, as errors that say what, where and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lakewright.errors import StorageUnavailable

__all__ = ["reading", "storage_error", "store_remedy"]

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


def store_remedy(said: str) -> str:
    """Return what to do about an error of an object store.

    Example:
        >>> store_remedy("RequestTimeTooSkewed: The difference is too large")
        'Set the clock of this machine (NTP), then run again.'
    """
    if re.search(r"Expired|InvalidToken|token.{0,20} expired", said):
        return "Renew the credentials, which have expired, then run again."
    if "RequestTimeTooSkewed" in said:
        return "Set the clock of this machine (NTP), then run again."
    return "Check the store, the credentials and their rights, and the `storage:` section; then run again."


def _reason(error: OSError) -> str:
    if error.strerror is not None:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    lines = [line.strip(" ↳\t") for line in _COLOUR.sub("", str(error)).splitlines()]
    said = [_NUMBER.sub("", line) for line in lines if line]
    path = next((found["path"] for line in said if (found := _OPENED.search(line))), None)
    last = said[-1] if said else type(error).__name__
    return f"{path}: {last}" if path is not None and path not in last else last


def _remedy(error: OSError) -> str | None:
    is_denied = isinstance(error, PermissionError) or "Permission denied" in str(error)
    return "Give the user who runs Lakewright access to it, then run again." if is_denied else None
