"""The codes of plans and of errors: what each means, why it comes about, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from lakewright.due.plan import Code, Reason
from lakewright.due.words import template_of
from lakewright.errors import LakewrightError

__all__ = ["ERRORS", "PLAN", "all_errors", "codes_of_errors", "codes_of_plan"]

Advice: TypeAlias = tuple[str, str]
"""Why, and what to do."""

NOTHING = "`lakewright apply`"
WAIT = "Wait"

PLAN: Mapping[Code, Advice] = {
    Code.HELD_UNRECORDED: ("The manifest is older than the table, or was lost", NOTHING),
    Code.SUPERSEDED: ("Each slice of a `full` table replaces all rows", NOTHING),
    Code.NEW_SLICES: ("Slices have arrived", NOTHING),
    Code.LATE_SLICE: (
        "A slice arrived after slices whose names come later",
        "`lakewright decide ENTITY/SLICE place`, `end` or `skip`; `late_slices` decides beforehand",
    ),
    Code.CHANGED_SLICE: (
        "Somebody has replaced the files of a slice whose rows are in the table",
        "`lakewright decide ENTITY/SLICE take` or `keep`; `changed_slices` decides beforehand",
    ),
    Code.FAILED_SLICE: (
        "The slice, or its place in the order, is wrong; the error says what",
        "Correct the slice or the declaration, and `lakewright decide ENTITY/SLICE retry`; or `skip`",
    ),
    Code.FAILED_BEFORE: ("An earlier slice has failed, or is being processed", "Decide about that one"),
    Code.OTHER_ORDER: ("A slice was skipped after the table had taken it", NOTHING),
    Code.REDECLARED: ("Key, strategy or columns are declared otherwise than the rows were made", NOTHING),
    Code.TABLE_GONE: (
        "Somebody has removed or moved the table",
        "Restore it; or `lakewright decide ENTITY new` makes it from its slices, and `wait` leaves it",
    ),
    Code.TABLE_OLDER: (
        "Somebody has put an older copy in the table's place",
        "Restore the last one; or `lakewright decide ENTITY new` makes it anew, and `wait` leaves it",
    ),
    Code.FILES_GONE: (
        "Slices that must be read again have left bronze, or have changed",
        "Bring the files back; or skip the slices that are gone",
    ),
    Code.UNCLAIMED: (
        "Only a job takes the slice, and its name does not have the job's parameters",
        "Run the job; or declare `slices: ${day}*` at the target of the entity",
    ),
    Code.LOCKED: ("A run is at work on it", WAIT),
    Code.DEAD_LOCK: ("The run that held the lock has ended", NOTHING),
    Code.FOREIGN_ROWS: (
        "Another program has written into the table",
        "`lakewright decide SUBJECT keep` or `drop`",
    ),
    Code.NO_BUILD: ("No run has built the instance", NOTHING),
    Code.CUT_OFF: ("A run was to build the instance, and died", NOTHING),
    Code.REDEFINED: ("The query, or what it uses, was changed since it was built", NOTHING),
    Code.INPUT_MOVED: ("What it was built from has other rows now", NOTHING),
    Code.INPUT_MISSING: (
        "Nothing makes what it reads, or that is not built yet",
        "Wait for the step that makes it; or bring what is missing",
    ),
    Code.INPUT_DUE: ("A step before it changes what it reads", NOTHING),
    Code.OUTPUT_CHANGED: ("Another program has written into what it built", NOTHING),
    Code.OUTPUT_GONE: ("What it built was emptied, restored, replaced or removed", NOTHING),
    Code.WITHDRAWN: (
        "A person has truncated or destroyed it",
        "Nothing; or `lakewright decide TARGET/INSTANCE again`",
    ),
    Code.KEPT_AS_FILLED: (
        "It is stale, and declared with `buildPolicy: IF_EMPTY`",
        "Nothing; or empty it, and run its job",
    ),
    Code.APPENDED_BEFORE: (
        "It adds its rows, and has been built from what has changed since",
        "`lakewright decide TARGET/INSTANCE keep`; `again` adds them once more",
    ),
    Code.UNSEEN: (
        "Only Spark, or a database, knows",
        "Run its job once they have changed; or declare `refresh: daily`",
    ),
    Code.REFRESH: ("`refresh` of the target says so", NOTHING),
    Code.UNCHECKED: ("What VERIFY has checked has changed since", NOTHING),
    Code.CHECK_FAILED: (
        "VERIFY has found rows that its checks do not allow",
        "Correct the rows; or `lakewright decide TARGET/INSTANCE waive`",
    ),
    Code.SLICE_GONE: (
        "A slice that waits has left bronze",
        "Bring it back; or `lakewright decide ENTITY/SLICE skip`",
    ),
    Code.SKIPPED_CHANGED: (
        "A skipped slice was corrected, as after an undo",
        "`lakewright decide ENTITY/SLICE take` or `keep`",
    ),
    Code.INCOMPLETE: ("A program is still writing the slices", WAIT),
    Code.UNREADABLE: ("Something in bronze looks like a slice; it is left out", "Remove or correct it"),
    Code.NO_FILES: (
        "There is no such folder, or nothing in it matches the entity's `from`",
        "Correct `from`; or wait for the first file",
    ),
    Code.UNDATED: (
        "Versions begin at the date in a slice's name, and these names have none",
        "Declare `time`: the form of the date in the names, such as dd.MM.yyyy, or `now`",
    ),
    Code.VANISHED: (
        "Slices were archived or removed; their rows stay",
        "Nothing. Keep the files: a rebuild needs them. `lakewright manifest discover` lists them",
    ),
    Code.ELSEWHERE: (
        "The slices were recorded before the lake was moved",
        "Bring them into the present folder; or `lakewright manifest skip ITEM` ends the message",
    ),
    Code.BAD_ROWS: (
        "Rows did not fit their columns, and `on_bad_rows: quarantine` put them aside",
        "Correct the source, and remove the folder",
    ),
    Code.DISABLED: ("`enabled: false` at the entity", "Enable it; or leave it"),
    Code.UNDECLARED: (
        "The manifest has slices of an entity that was renamed or removed",
        "Declare it under its former name; or process its folder under the new name; or DESTROY it",
    ),
    Code.UNRECORDED: (
        "The manifest was lost, and no log has the builds of files, updates and merges",
        "Run its job for what is to be built",
    ),
    Code.FAILED_ITEM: (
        "Another program that uses the manifest has failed",
        "`lakewright manifest show ITEM` has the error",
    ),
    Code.LEFT_ITEM: ("Another program has ended without an end", "`lakewright manifest release ITEM`"),
    Code.BROKEN: (
        "The project, the manifest, a table or a folder can't be read, or a lake was moved",
        "Do what the remedy below it says",
    ),
    Code.UNKNOWN: ("Only Spark, or a run of a job, knows", "Nothing"),
}

_CALLER = "Correct the call or the project's files"
_WHEN = "Run again"
_DECIDE = "`lakewright status` has the choices"

ERRORS: Mapping[str, str] = {
    "error": "Do what the message says",
    "spec": "Correct the files that the message names; `lakewright validate` looks at all of them",
    "usage": _CALLER,
    "not_offered": "`lakewright plan` shows what is offered now",
    "run_failed": "`lakewright status` names what failed, and what goes on by itself",
    "not_installed": "Install what the remedy names",
    "service_ended": "Start the server again, and report the traceback in the log",
    "spark_unavailable": "`lakewright doctor` looks at Java, Spark and the settings",
    "manifest_corrupt": "`lakewright manifest fsck` looks for more, and names what repairs it",
    "illegal_transition": "`lakewright manifest show ITEM` shows what has happened to it",
    "sequence_conflict": "Read the item again, and decide again",
    "held": "Wait for the run that it names; or do what the remedy says",
    "item_locked": "Wait for the run; `lakewright manifest release ITEM` frees the lock of one that died",
    "item_failed": "Correct the cause, then `lakewright manifest resolve ITEM`",
    "item_waits": "Run the application that it waits for",
    "lease_held": "Wait for the run that it names",
    "lake_moved": "Do what the remedy says: it depends on what has moved",
    "retryable": _WHEN,
    "commit_conflict": _WHEN,
    "commit_too_late": "Check whether the rows of the slice are in the table, as the remedy says",
    "executor_lost": _WHEN,
    "store_unavailable": "Look after the database, the disk or the network; then run again",
    "store_busy": _WHEN,
    "slice_unsettled": "Run again once the source has ended",
    "storage_unavailable": "Look after access rights, the disk or the network; then run again",
    "database_unavailable": "Look after the database; then run again",
    "lease_lost": "Run again; a machine that slept or was very slow loses its lease",
    "target": "Correct what the message names; then run again",
    "slice": f"Correct the slice; {_DECIDE}",
    "schema_drift": f"Correct the slice or the columns of the entity; {_DECIDE}",
    "column_mismatch": "Correct the mapping, or what it reads",
    "duplicate_business_key": f"Correct the slice or the key; {_DECIDE}",
    "null_key": f"Correct the slice, or declare `null_keys: allow`; {_DECIDE}",
    "bad_rows": f"Correct the slice, or raise `max_bad_rows`; {_DECIDE}",
    "delete_brake": f"If the slice is complete, raise `max_delete_ratio` or `delete_floor`; {_DECIDE}",
    "late_slice": _DECIDE,
    "backdated": "Give a later processing time, or permit it with `--allow-backdated`",
    "data_loss": "Permit it with `--allow-data-loss`, if the rows may go",
    "migration": "Do what the remedy says: declare what the table is, or make it anew",
    "verification": "Correct the rows or the check; `lakewright decide TARGET/INSTANCE waive` accepts them",
    "command_failed": "Look at the output of the command; then `lakewright manifest resolve ITEM`",
    "timeout": "Raise the `timeout` of the target, or make it faster",
    "jvm_ended": "Run again; with more memory if the log says that it ran out of it",
    "metrics": "Report it: nothing was committed",
}


def codes_of_plan() -> str:
    """Return the table of the codes of plans."""
    rows = [(code.value, Reason(code).severity.value, template_of(code), *PLAN[code]) for code in Code]
    return _table(
        ("code", "severity", "what it says", "why", "what to do"),
        ((f"`{code}`", severity, _quoted(text), why, do) for code, severity, text, why, do in rows),
    )


def codes_of_errors() -> str:
    """Return the table of the codes of errors."""
    rows = ((f"`{each.code}`", _first(each), ERRORS[each.code]) for each in all_errors())
    return _table(("code", "what has happened", "what to do"), rows)


def all_errors() -> list[type[LakewrightError]]:
    """Return the classes of errors, each after its base."""
    return list(_below(LakewrightError))


def _below(base: type[LakewrightError]) -> Iterator[type[LakewrightError]]:
    yield base
    for each in base.__subclasses__():
        if each.__module__.startswith("lakewright.errors"):
            yield from _below(each)


def _first(error: type[LakewrightError]) -> str:
    """Return the first paragraph of the description of an error."""
    return " ".join((error.__doc__ or "").partition("\n\n")[0].split()).rstrip(".")


def _quoted(template: str) -> str:
    return re.sub(r"\{\w+\}", "…", template)


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    first, *others = (f"| {' | '.join(line)} |" for line in (head, *rows))
    return "\n".join((first, "|---" * len(head) + "|", *others))
