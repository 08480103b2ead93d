"""The reasons of steps of a job's plan, and of what a run makes of them."""

from __future__ import annotations

from lakewright.spec.reason import Reason, ReasonCode


class Code(ReasonCode):
    """Why a step would run, is clean or is blocked, or what else is to be known of it."""

    NOTE = "note", "{text}"
    ERROR = "error", "{why}"
    AS_BEFORE = "as_before", "as in {phase}"

    # Outputs
    ABSENT = "absent", "does not exist"
    EMPTY = "empty", "is empty"
    FILLED = "filled", "is filled"
    PRESENT = "present", "exists"
    WAS_ABSENT = "was_absent", "{done}: did not exist"
    WAS_EMPTY = "was_empty", "{done}: was empty"
    WAS_FILLED = "was_filled", "{done}: was filled"
    WAS_PRESENT = "was_present", "{done}: existed"
    MAY_EXIST = "may_exist", "whether it exists is unknown"
    MAY_BE_FILLED = "may_be_filled", "whether it is filled is unknown"
    UNOBSERVED = "unobserved", "{why}"
    CONFORMS = "conforms", "exists and conforms"
    CHANGED = "changed", "{change}"
    TOLERATED = "tolerated", "{change}: left unchanged (migrationStrategy NEVER)"
    MADE_BY_WRITE = "made_by_write", "its columns are not known yet: the first write creates it"
    MADE_IN_BUILD = "made_in_build", "is {is_new:created|made anew} in BUILD, when {inputs} exists"
    INPUTS_ABSENT = "inputs_absent", "{inputs} does not exist yet"
    NO_ROWS = "no_rows", "{subject} is empty"
    HAS_ROWS = "has_rows", "{subject} already holds rows ({mode})"
    FAILS_ON_ROWS = "fails_on_rows", "the build fails: rows are there (mode {mode})"
    LEAVES_ROWS = (
        "leaves_rows",
        "mode {mode} does not fail, as the build policy leaves it: `buildPolicy: ALWAYS` would",
    )

    # Policies and builds
    ALWAYS_RUNS = "always_runs", "{phase} always runs"
    KIND_ALWAYS_RUNS = "kind_always_runs", "a {kind} target always runs"
    NEVER_RUNS = "never_runs", "is never dirty"
    POLICY = "policy", "build policy {policy}"
    UNTAINTED = "untainted", "build policy {policy}, and none of its dependencies has run"
    WHOLE = "whole", "no partition is given, so everything is written again (build policy {policy})"
    ADDS_ROWS = "adds_rows", "output mode {mode} adds rows in every build"
    UPDATES_ROWS = "updates_rows", "output mode {mode} updates rows and adds new ones in every build"
    UNCHANGED = "unchanged", "neither its definition nor its inputs have changed since the last build"
    NO_BUILD = "no_build", "no successful build is recorded"
    UNSEEN_INPUTS = "unseen_inputs", "its inputs have no versions to compare, so they may have changed"
    REDEFINED = "redefined", "its definition has changed since it was built: --force builds it again"
    ADDED_ALREADY = "added_already", "an earlier attempt has added its rows already"
    FORCED = "forced", "--force"
    DIRTY = "dirty", "--dirty"
    TAINTED = "tainted", "tainted by {target}"
    TAINTED_BEFORE = "tainted_before", "tainted by {target} of an earlier instance"
    SHARED = "shared", "also of {jobs:job|jobs} {jobs}"

    # Conditions of statements
    HOLDS = "holds", "its condition holds"
    HOLDS_NOT = "holds_not", "its condition does not hold"
    MAY_HOLD = "may_hold", "its condition may change when earlier steps have run"
    NO_CONDITION = "no_condition", "has no condition"
    NO_NUMBER = "no_number", "its condition returns {value}, which is not a number"
    NOT_EVALUATED = "not_evaluated", "its condition cannot be evaluated: {why}"
    NOTHING_RUN = "nothing_run", "nothing was run: its condition does not hold"

    # Slices
    PENDING = "pending", "{slices:slice} to process: {slices}"
    PROCESSED = "processed", "{slices:slice} processed: {slices}"
    FAILED = "failed", "{slices} failed"
    FAILED_BEFORE_OTHERS = "failed_before_others", "{slices} failed, and {waiting:slice} {waiting:waits|wait}"
    UNSETTLED = (
        "unsettled",
        "the {slices:end of the slice|ends of the slices} {slices} could not be recorded; "
        "the next run finds out whether {slices:it is|they are} in the table",
    )
    OVERTAKEN = "overtaken", "{slices} {slices:is|are} older, and late afterwards"
    LATE = "late", "{slices} {slices:is|are} late: {by} refuses {slices:it|them}. {advice}"
    LEFT = "left", "leaves {slices:slice} to other runs: {slices}; {command} takes {slices:it|them}"
    ALL_PROCESSED = "all_processed", "every slice{is_part: that it takes|} has been processed"
    ALL_SKIPPED = (
        "all_skipped",
        "{number:the only slice|all # slices}{is_part: that it takes|} {number:is|are} skipped",
    )
    OTHERS_SKIPPED = (
        "others_skipped",
        "every slice{is_part: that it takes|} has been processed, "
        "except {number:one that is|# that are} skipped",
    )
    NONE_TAKEN = "none_taken", "bronze has no slice that it takes ({limits})"
    NO_FOLDER = "no_folder", "no slice has arrived: there is no folder {folder}"
    NO_SLICES = "no_slices", "no slice has arrived in {pattern}"
    WAITS_FOR = "waits_for", "{slice} waits for {applications}"
    WAIT_FOR = "wait_for", "{number} slices, from {slice} on, wait for {applications}"
    NONE_TO_CHECK = "none_to_check", "there is no slice to check"
    UNRECORDED = (
        "unrecorded",
        "the manifest lacks what the table's log shows: the run first records {slices:slice}: {slices}",
    )
    NOT_ENDED = "not_ended", "the {what} did not end: the run first records what it did, or drops it"
    STALE_LOCK = "stale_lock", "found {item} locked by {holder} since {since}: {why}"
    KEPT = "kept", "stay processed, because others have processed them too: {slices}"
    ALL_SLICES = "all_slices", "affects all slices: `{limits}` limits only BUILD"

    # Tables of entities
    DISABLED = "disabled", "the entity is disabled"
    MADE_BY_SLICE = "made_by_slice", "the first slice creates the table"
    ADOPTED_BY_SLICE = "adopted_by_slice", "the table is adopted with the first slice"
    ADOPTED = "adopted", "the table was adopted"
    TABLE_GONE = "table_gone", "the table is gone, although slices are processed into it"
    FORGOTTEN = "forgotten", "the table is gone; the manifest forgets the slices processed into it"
    FAILS_WITHOUT_TABLE = "fails_without_table", "fails as long as no slice has created the table"

    # Other steps
    OWN_BLOCKED = "own_blocked", "its {phase} is blocked"
    BLOCKED = "blocked", "{target} is blocked"
    BLOCKED_BEFORE = "blocked_before", "not reached while {target} is blocked in {phase}"
    WITHHELD = "withheld", "it waits for a fault in the project's files"
    FAULTY = "faulty", "it waits for a fault in the project's files: {why}"
    SOURCE_WITHHELD = "source_withheld", "{target} waits for a fault"
    MAY_NEED = "may_need", "it may need what {target} writes, which waits for a fault"
    SOURCE_UNDONE = "source_undone", "depends on {target}, which {ended}"
    OWN_UNDONE = "own_undone", "its {phase} {ended}"
    RELIED_UNDONE = "relied_undone", "{phase} of {target} for {instance}, on which it relies, {ended}"
    TARGET_FAILED = "target_failed", "not reached: {target} failed"
    PHASE_UNDONE = "phase_undone", "not reached: {phase} {ended}"
    INSTANCE_FAILED = "instance_failed", "not reached: the instance {instance} failed"
    RUN_INTERRUPTED = "run_interrupted", "not reached: the run was interrupted"
    RUN_ENDED = "run_ended", "not reached: the run ended with an error: {why}"
    INTERRUPTED = "interrupted", "interrupted"
    STOPPED = "stopped", "the run was asked to stop"
    ATTEMPT_FAILED = "attempt_failed", "attempt {attempt} of {attempts} failed: {why}"


def note(text: str) -> Reason:
    """Return what is only to be read."""
    return Reason(Code.NOTE, {"text": text})


def error_reason(message: str) -> Reason:
    """Return the reason that the error of the step repeats."""
    return Reason(Code.ERROR, {"why": message})
