"""Delta tables whose log is damaged: which files are at fault, and what to do.

Neither Spark nor the `deltalake` package can read such a table. Spark tells it in a page of Java.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from lakewright.errors import LakewrightError, MigrationError, TargetError
from lakewright.lake.paths import is_s3, local_path
from lakewright.plan.observation import Observation
from lakewright.spec.words import counted

__all__ = [
    "DAMAGED",
    "IN_PLACE",
    "LACKS",
    "damage_in_text",
    "damaged_commits",
    "damaged_log_error",
    "failed_observation",
    "file_in_place_error",
    "known_remedy",
    "lost_files_error",
    "lost_log_error",
    "moving_command",
]

DAMAGED = "damaged_log"
"""The entry of an error's details that names the table whose log is damaged."""

IN_PLACE = "file_in_place"
"""The entry of an error's details that names a file which stands where a table's folder belongs."""

LACKS = "missing_files"
"""The entry of an error's details that has the data files which a table lacks."""

_COMMIT = re.compile(r"\d{20}\.json")
_OF_SPARK = re.compile(
    r"(?:Encountered error while reading file|Checksum error:) (\S+)/_delta_log/(\d{20}\.json|\S+?\.parquet)"
)


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
    is_missing = fault == "missing"
    return TargetError(
        f"the table {table} can't be read: its log file {name} is missing"
        if is_missing
        else f"the table {table} can't be read: its log file {name} is damaged",
        remedy=_remedy(table),
        details={DAMAGED: table, "files": [each for each, _ in files]},
    )


def damage_in_text(text: str) -> TargetError | None:
    """Return the error for a file of a table's log that Spark could not read; None if it names none."""
    found = _OF_SPARK.search(text)
    if found is None:
        return None
    table = str(local_path(found[1]) or found[1])
    return damaged_log_error(table, ((found[2], "damaged"),))


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
        remedy="If it is a table, bring its folder _delta_log back from a copy. Without one, "
        f"{_made_again(table)} If other files are there, declare another place.",
        details={DAMAGED: table},
    )


def file_in_place_error(table: str, file: str) -> TargetError:
    """Return the error for a file that stands where a table's folder belongs, or a folder above it.

    Args:
        table: The folder of the table.
        file: The file.
    """
    which = "the table's folder" if file == table else f"the folder of the table {table}"
    moving = f"mv {shlex.quote(file)} {shlex.quote(f'{file}.moved')}"
    return TargetError(
        f"a file stands at {file}, where {which} belongs",
        remedy=f"Move the file away: `{moving}`. Then bring the folder back if it was moved. Without it, "
        "`lakewright status` names what makes the table again.",
        details={IN_PLACE: file, "commands": [moving]},
    )


def lost_files_error(table: str, files: Sequence[str]) -> TargetError:
    """Return the error for a table that lacks data files, of which there is at least one.

    Args:
        table: Its folder.
        files: The names of the files.
    """
    return TargetError(
        f"the table {table} can't be read as a whole: it lacks {counted(len(files), 'data file')}, "
        f"such as {files[0]}",
        remedy=_remedy(table),
        details={DAMAGED: table, LACKS: list(files)},
    )


def known_remedy(commands: Sequence[str]) -> str:
    """Return what to do about a damaged table whose commands to make it again are known, in this order."""
    typed = ", then ".join(f"`{command}`" for command in commands)
    return f"Restore what is missing or damaged from a copy. Without one: {typed}."


def moving_command(table: str) -> str:
    """Return the command that moves a table's folder away."""
    places = f"{shlex.quote(table)} {shlex.quote(f'{table}.damaged')}"
    return f"aws s3 mv --recursive {places}" if is_s3(table) else f"mv {places}"


def _remedy(table: str) -> str:
    return f"Restore the file from a copy. Without one, {_made_again(table)}"


def _made_again(table: str) -> str:
    return (
        f"move the folder away, `{moving_command(table)}`, and make the table again: that of an entity by "
        "`lakewright rebuild ENTITY --yes`, any other by the job that builds it, for each of its instances."
    )
