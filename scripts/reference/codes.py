"""The codes of plans and of errors: what each means, why it comes about, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from lakewright.due.plan import Code
from lakewright.errors import LakewrightError

_DECIDE = "[Decide](applying.md#what-a-person-decides)"

PLAN: Mapping[Code, str] = {
    Code.HELD_UNRECORDED: "The manifest is older than the table, or was lost",
    Code.SUPERSEDED: "",
    Code.NEW_SLICES: "",
    Code.LATE_SLICE: f"{_DECIDE}, or declare `late_slices`",
    Code.LATE_SKIPPED: "Or declare another `late_slices`",
    Code.CHANGED_SLICE: f"{_DECIDE}, or declare `changed_slices`",
    Code.FAILED_SLICE: f"Correct the slice or the declaration, or {_DECIDE.lower()}",
    Code.FAILED_BEFORE: "Decide about that one",
    Code.OTHER_ORDER: "",
    Code.REDECLARED: "",
    Code.TABLE_GONE: f"Restore it, or {_DECIDE.lower()}",
    Code.TABLE_OLDER: f"Restore the last one, or {_DECIDE.lower()}",
    Code.FILES_GONE: "Bring the files back, or skip the slices",
    Code.UNCLAIMED: "Run the job, or declare `slices: ${day}*` at the entity's target",
    Code.LOCKED: "Wait for the run",
    Code.DEAD_LOCK: "",
    Code.FOREIGN_ROWS: _DECIDE,
    Code.NO_BUILD: "",
    Code.CUT_OFF: "",
    Code.REDEFINED: "",
    Code.INPUT_MOVED: "",
    Code.INPUT_MISSING: "Wait for the step that makes it, or bring it",
    Code.INPUT_DUE: "",
    Code.OUTPUT_CHANGED: "",
    Code.OUTPUT_GONE: "",
    Code.WAIVED: f"By `waive`. {_DECIDE} otherwise",
    Code.WITHDRAWN: f"By TRUNCATE or DESTROY. {_DECIDE} otherwise",
    Code.KEPT_AS_FILLED: "By `buildPolicy: IF_EMPTY`. To build it, empty it",
    Code.APPENDED_BEFORE: f"Its inputs have changed since. {_DECIDE}",
    Code.UNSEEN: "Run its job, or declare `refresh: daily`",
    Code.REFRESH: "",
    Code.UNCHECKED: "",
    Code.CHECK_FAILED: f"Correct the rows, or {_DECIDE.lower()}",
    Code.SLICE_GONE: f"Bring it back, or {_DECIDE.lower()}",
    Code.SKIPPED_CHANGED: _DECIDE,
    Code.INCOMPLETE: "Wait for the program that writes the slices",
    Code.UNREADABLE: "Remove or correct it",
    Code.NO_FILES: "Correct the entity's `from`, or wait for the first file",
    Code.UNDATED: "Declare `time`",
    Code.TAKEN_OVER: "By `adopt` or `history_from`",
    Code.VANISHED: "Their rows stay; a rebuild needs the files",
    Code.ELSEWHERE: "Move them into the lake's present folder, or `lakewright manifest skip ITEM`",
    Code.BAD_ROWS: "By `on_bad_rows: quarantine`. Correct the source, and remove the folder",
    Code.DISABLED: "",
    Code.UNDECLARED: "Declare it again, or `moved_from: NAME`, or DESTROY it",
    Code.UNRECORDED: "The manifest was lost",
    Code.FAILED_ITEM: "It is another program's: `lakewright manifest show ITEM`",
    Code.LEFT_ITEM: "It is another program's: `lakewright manifest release ITEM`",
    Code.BROKEN: "Follow the remedy",
    Code.UNKNOWN: "Only Spark, or a run of a job, knows",
}
"""What to do about a step or finding, and why it comes about where its text does not say that."""

_RUN = "Run again"

ERRORS: Mapping[str, str] = {
    "error": "",
    "spec": "`lakewright validate`",
    "usage": "",
    "not_offered": "`lakewright plan` shows the present ones",
    "run_failed": "`lakewright status` names what to do",
    "not_installed": "",
    "service_ended": "Start it again",
    "spark_unavailable": "See `lakewright doctor`",
    "manifest_corrupt": "See `lakewright manifest fsck`",
    "illegal_transition": "See `lakewright manifest show ITEM`",
    "sequence_conflict": "Read the item, and decide again",
    "held": "",
    "item_locked": "Wait, or `lakewright manifest release ITEM`",
    "item_failed": "`lakewright manifest resolve ITEM`",
    "item_waits": "Run that application",
    "lease_held": "Wait for it",
    "lake_moved": "Follow the remedy",
    "retryable": _RUN,
    "commit_conflict": _RUN,
    "commit_too_late": "Follow the remedy",
    "executor_lost": _RUN,
    "store_unavailable": _RUN,
    "store_busy": _RUN,
    "slice_unsettled": _RUN,
    "storage_unavailable": "Check access",
    "database_unavailable": _RUN,
    "lease_lost": _RUN,
    "target": "",
    "slice": "Correct the slice",
    "schema_drift": "Correct the slice or the entity's columns",
    "column_mismatch": "Correct the mapping, or what it reads",
    "duplicate_business_key": "Correct the slice or the key",
    "null_key": "Correct the slice, or declare `null_keys: allow`",
    "bad_rows": "Correct the slice, or raise `max_bad_rows`",
    "delete_brake": "If the slice is complete, `lakewright apply ENTITY --allow deletes`",
    "late_slice": "Decide",
    "backdated": "Give a later one, or `lakewright apply ENTITY --allow backdated`",
    "data_loss": "`--allow-data-loss` permits it",
    "migration": "Declare what the table is, or make it anew",
    "verification": "Correct rows or check, or `lakewright decide TARGET/INSTANCE waive`",
    "command_failed": "`lakewright manifest resolve ITEM`",
    "timeout": "Raise the `timeout`, or make the target faster",
    "jvm_ended": "Give it more memory if it ran out",
    "metrics": "Report it",
}


def codes_of_plan() -> str:
    """Return an entry for each code of plans: what it says, and the advice."""
    advice = {code: f": {text}" if text else "" for code, text in PLAN.items()}
    return "\n".join(f"- `{code.value}` ({_quoted(code.template)}){advice[code]}" for code in Code)


def codes_of_errors() -> str:
    """Return an entry for each code of errors: what has happened, and the advice."""
    return "\n".join(
        f"- `{each.code}`: {_first(each)}. {ERRORS[each.code]}".rstrip() for each in all_errors()
    )


def all_errors() -> list[type[LakewrightError]]:
    """Return the classes of errors, each after its base."""
    return list(_below(LakewrightError))


def _below(base: type[LakewrightError]) -> Iterator[type[LakewrightError]]:
    yield base
    for each in base.__subclasses__():
        if each.__module__.startswith("lakewright.errors"):
            yield from _below(each)


def _first(error: type[LakewrightError]) -> str:
    """Return the first sentence of the description of an error."""
    return " ".join((error.__doc__ or "").split()).partition(". ")[0].rstrip(".")


def _quoted(template: str) -> str:
    return re.sub(r"\{\w+\}", "…", template)
