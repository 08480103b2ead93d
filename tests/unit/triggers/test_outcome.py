"""How a trigger's run ended: rules of the server, "Triggers" (a retryable failure is retried)."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from lakewright.errors import (
    ExecutorLost,
    JvmEnded,
    LakewrightError,
    SliceError,
    StorageUnavailable,
    StoreUnavailable,
)
from lakewright.spark.jvm import jvm_failure
from lakewright.triggers.commands import ending_of
from lakewright.triggers.state import Attempt, Ending, Result

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def ended(code: int, printed: str) -> Ending:
    return ending_of(Attempt(NOW, NOW, 1), code, printed, NOW)


def printed(*errors: LakewrightError) -> str:
    return json.dumps({"errors": [{"code": error.code, "message": error.message} for error in errors]})


@pytest.mark.parametrize(
    ("errors", "result"),
    [
        ([jvm_failure("000001.csv", RuntimeError("java.lang.OutOfMemoryError: Java heap space"))], "retry"),
        ([JvmEnded("Spark's JVM was killed")], "retry"),
        ([StorageUnavailable("No space left on device")], "retry"),
        ([StoreUnavailable("the manifest does not answer")], "retry"),
        ([ExecutorLost("an executor was lost")], "retry"),
        ([SliceError("it is no CSV")], "failed"),
        ([JvmEnded("Spark's JVM was killed"), SliceError("it is no CSV")], "failed"),
    ],
)
def test_a_run_is_repeated_unless_one_of_its_errors_needs_a_person(
    errors: list[LakewrightError], result: str
) -> None:
    ending = ended(1, printed(*errors))
    assert (ending.result, ending.message) == (Result(result), errors[0].message)


MISSING = "column 'amount' is missing; it is null in what is written"


def test_what_slices_and_targets_warn_of_is_kept_with_their_names() -> None:
    """Only the report of a job's run told of a column that a slice lacks: a trigger has no reader."""
    process = {"entity": "orders", "slices": [{"slice": "1.csv", "warnings": [MISSING]}, {"slice": "2.csv"}]}
    assert ended(0, json.dumps(process)).warnings == (f"1.csv: {MISSING}",)
    slices = {"slices": [{"slice": "1.csv", "warnings": [MISSING]}]}
    told = [
        {"name": "orders", "status": "SUCCESS", "error": None, "metrics": slices, "warnings": []},
        {"name": "gold", "status": "SUCCESS", "error": None, "metrics": {"slices": 3}, "warnings": ["x"]},
    ]
    job = {"instances": [{"phases": [{"targets": told}]}]}
    assert ended(0, json.dumps(job)).warnings == (f"orders: 1.csv: {MISSING}", "gold: x")
    assert ended(0, "").warnings == ()


def test_of_many_warnings_the_first_are_kept_and_the_others_counted() -> None:
    process = {"slices": [{"slice": f"{number}.csv", "warnings": ["y" * 900]} for number in range(9)]}
    kept = ended(0, json.dumps(process)).warnings
    assert (len(kept), kept[-1]) == (6, "4 more")
    assert all(len(each) <= 500 for each in kept)


def test_a_run_that_a_signal_ends_before_it_says_anything_is_repeated() -> None:
    """The state of the trigger said `signal 9 ended it`, and nothing of the cause or where to look."""
    said = (
        "signal 9 (SIGKILL) ended its process: somebody killed it, or the machine ran out of memory "
        "(see `dmesg`); what it printed is in the log of the server"
    )
    assert ended(137, "") == Ending(NOW, NOW, NOW, Result.RETRY, said)
    assert ended(143, "").message.startswith("signal 15 (SIGTERM) ended its process; ")
    assert ended(137, '{"errors": [').result is Result.RETRY
    assert ended(1, "").result is Result.FAILED
