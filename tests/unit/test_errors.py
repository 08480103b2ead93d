"""The tree of errors is complete, and its classes can be told apart by programs."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakewright
from lakewright import errors
from lakewright.errors import Fault, LakewrightError, Location, SpecError

PACKAGE = Path(lakewright.__file__).parent
LINE = re.compile(r"^(?P<indent>[│├└─ ]*)(?P<name>[A-Z]\w+)(?P<when> +\S.*)?$")

INTERNAL = {
    "BadSlice",
    "Collision",
    "FileFault",
    "HttpFault",
    "NotData",
    "NotFoldable",
    "Overtaken",
    "Refused",
}
"""Exceptions that are caught within the module's own package and never reach a caller."""

BUILT_IN = {"BaseException", "Exception", "KeyError", "OSError", "RuntimeError", "TypeError", "ValueError"}


def all_errors(base: type[LakewrightError] = LakewrightError) -> Iterator[type[LakewrightError]]:
    yield base
    for child in base.__subclasses__():
        yield from all_errors(child)


def in_package(error: type[LakewrightError]) -> bool:
    return error.__module__.startswith(errors.__name__)


def declared() -> dict[str, type[LakewrightError]]:
    return {error.__name__: error for error in all_errors() if in_package(error)}


def drawn() -> Iterator[tuple[str, str | None, bool]]:
    """Yield name, parent and whether there is a description, of each class in the module's docstring."""
    parents: list[str] = []
    tree = (errors.__doc__ or "").split("```")[1].strip("\n")
    for line in tree.splitlines():
        found = LINE.match(line)
        assert found is not None, line
        depth = len(found["indent"]) // 4
        yield found["name"], parents[depth - 1] if depth else None, found["when"] is not None
        parents[depth:] = [found["name"]]


def exceptions_of(tree: ast.AST) -> Iterator[tuple[str, set[str]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, {ast.unparse(base).rpartition(".")[2] for base in node.bases}


def test_the_tree_in_the_docstring_has_every_class_below_its_parent() -> None:
    parents = {name: error.__bases__[0].__name__ for name, error in declared().items()}
    assert {name: parent for name, parent, _ in drawn()} == {**parents, "LakewrightError": None}


def test_the_tree_says_when_each_error_is_raised() -> None:
    assert [name for name, parent, is_described in drawn() if parent and not is_described] == []


def test_the_module_exports_every_error() -> None:
    assert set(errors.__all__) == {*declared(), "Fault", "LakewrightWarning", "Location"}


def test_each_error_has_a_code_and_a_docstring_of_its_own() -> None:
    found = declared()
    codes = {name: vars(error).get("code") for name, error in found.items()}
    assert all(isinstance(code, str) and re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes.values())
    assert len(set(codes.values())) == len(codes)
    assert all(error.__doc__ for error in found.values())


def test_codes_stay_the_same_between_versions() -> None:
    assert {name: error.code for name, error in declared().items()} == {
        "BackdatedError": "backdated",
        "CommandFailed": "command_failed",
        "CommitConflict": "commit_conflict",
        "CommitTooLate": "commit_too_late",
        "DataLossError": "data_loss",
        "DatabaseUnavailable": "database_unavailable",
        "BadRowsError": "bad_rows",
        "ColumnMismatch": "column_mismatch",
        "DeleteBrakeError": "delete_brake",
        "DuplicateBusinesskeyException": "duplicate_business_key",
        "ExecutorLost": "executor_lost",
        "IllegalTransition": "illegal_transition",
        "ItemFailed": "item_failed",
        "ItemLocked": "item_locked",
        "ItemWaits": "item_waits",
        "JvmEnded": "jvm_ended",
        "LakeMoved": "lake_moved",
        "LakewrightError": "error",
        "LateSliceError": "late_slice",
        "LeaseHeld": "lease_held",
        "LeaseLost": "lease_lost",
        "ManifestCorrupt": "manifest_corrupt",
        "MetricError": "metrics",
        "MigrationError": "migration",
        "NotInstalled": "not_installed",
        "NotOffered": "not_offered",
        "NullKeyError": "null_key",
        "OperatorError": "held",
        "RetryableError": "retryable",
        "SchemaDriftError": "schema_drift",
        "RunFailed": "run_failed",
        "SequenceConflict": "sequence_conflict",
        "ServiceEnded": "service_ended",
        "SliceError": "slice",
        "SliceUnsettled": "slice_unsettled",
        "SparkUnavailable": "spark_unavailable",
        "SpecError": "spec",
        "StorageUnavailable": "storage_unavailable",
        "StoreBusy": "store_busy",
        "StoreUnavailable": "store_unavailable",
        "TargetError": "target",
        "TargetTimeout": "timeout",
        "UsageError": "usage",
        "VerificationError": "verification",
    }


def test_every_error_class_of_the_package_derives_from_the_base() -> None:
    elsewhere = {
        name: bases
        for path in sorted(PACKAGE.rglob("*.py"))
        if PACKAGE / "errors" not in path.parents
        for name, bases in exceptions_of(ast.parse(path.read_text()))
    }
    exceptions = {name for name, bases in elsewhere.items() if bases & {*BUILT_IN, *INTERNAL, *declared()}}
    assert {name for name in exceptions if not name.startswith("_")} == INTERNAL


@pytest.mark.parametrize("error", [each for each in all_errors() if each.default_remedy is not None])
def test_remedies_are_sentences(error: type[LakewrightError]) -> None:
    remedy = error.default_remedy or ""
    assert remedy[:1].isupper()
    assert remedy.endswith(".")


def test_only_a_retryable_error_says_that_a_retry_may_succeed() -> None:
    retryable = {error for error in all_errors() if error.is_retryable}
    assert retryable == set(all_errors(errors.RetryableError))
    assert errors.retryable_codes() == {error.code for error in retryable}


def test_an_error_of_several_faults_prints_each_with_its_place() -> None:
    faults = [Fault("a is missing", Location("a.yml", 3), "Add it."), Fault("b is unknown")]
    assert str(SpecError(faults)) == "a.yml:3: a is missing (Add it.)\nb is unknown"


@pytest.mark.parametrize("error", declared().values(), ids=declared())
def test_an_error_can_be_sent_to_another_process(error: type[LakewrightError]) -> None:
    """A `SpecError` could not: a scheduler's or a pool's process lost it."""
    made = SpecError([Fault("m", remedy="r")]) if error is SpecError else error("m", remedy="r")
    found = pickle.loads(pickle.dumps(made))
    assert type(found) is error
    assert (found.message, found.remedy, found.code) == ("m", "r", made.code)
    assert found.as_fault() == made.as_fault()
    assert list(found.advice()) == list(made.advice())
