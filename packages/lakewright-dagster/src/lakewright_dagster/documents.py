"""Assets and checks from Lakewright's JSON documents, without Dagster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]

CHECKS = frozenset({"compare", "verify"})
GUARDS = frozenset({"validate"})
OWN_CHECK = "verify"
CHANGED = ("inserted", "changed", "closed", "deleted")
FAILURES = frozenset({"FAILED", "BLOCKED", "ABORTED"})


@dataclass(frozen=True, slots=True)
class PlannedAsset:
    """An asset for a target that makes something.

    Attributes:
        reads: The targets whose assets it is made from.
        entity: The entity that it processes, if it does.
    """

    target: str
    kind: str
    reads: tuple[str, ...]
    entity: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedCheck:
    """A check of an asset: VERIFY of its own target, or a target that only checks.

    Attributes:
        asset: The target of the asset.
        target: The target whose result in VERIFY is that of the check.
        also_reads: Targets of other assets that it reads.
    """

    name: str
    asset: str
    target: str
    also_reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """The assets and checks of a job, in its order, and the targets that guard each run of it."""

    assets: tuple[PlannedAsset, ...]
    checks: tuple[PlannedCheck, ...]
    guards: tuple[str, ...]

    def built_from(self, target: str) -> tuple[str, ...]:
        """Return a target and the targets that are made from it, directly or not."""
        found = [target]
        for asset in self.assets:
            if set(asset.reads) & set(found):
                found.append(asset.target)
        return tuple(found)


def outline_of(targets: Sequence[Document]) -> Outline:
    """Return the assets and checks of the targets of `lakewright graph JOB -o json`.

    A target that checks is a check of the last asset that it reads. What it reads being no asset of the job,
    it is an asset of its own.

    Example:
        >>> each = {"name": "orders", "kind": "entity", "entity": "orders", "reads": []}
        >>> check = {"name": "some", "kind": "verify", "entity": None, "reads": ["orders"]}
        >>> [(found.asset, found.name) for found in outline_of([each, check]).checks]
        [('orders', 'verify'), ('orders', 'some')]
    """
    made = [each["name"] for each in targets if each["kind"] not in CHECKS | GUARDS]
    assets, checks = [], []
    for each in targets:
        read = tuple(name for name in made if name in each["reads"])
        if each["kind"] in GUARDS:
            continue
        if each["kind"] in CHECKS and read:
            name = re.sub(r"\W", "_", each["name"])
            checks.append(PlannedCheck(name, read[-1], each["name"], read[:-1]))
            continue
        assets.append(PlannedAsset(each["name"], each["kind"], read, each["entity"]))
        checks.append(PlannedCheck(OWN_CHECK, each["name"], each["name"]))
    guards = tuple(each["name"] for each in targets if each["kind"] in GUARDS)
    return Outline(tuple(assets), tuple(checks), guards)


def chosen_job(jobs: Iterable[str], wanted: str | None) -> str:
    """Return the job that is wanted, or the only one.

    Raises:
        ValueError: There is none, or several and none is wanted.
    """
    known = sorted(jobs)
    if wanted in known:
        return wanted
    if wanted is None and len(known) == 1:
        return known[0]
    problem = "the project has several jobs" if wanted is None else f"the project has no job {wanted!r}"
    raise ValueError(f"{problem}. Do: give job=, one of {', '.join(known) or 'none: declare a job'}")


@dataclass(frozen=True, slots=True)
class TargetOutcome:
    """How a target ended in all instances of a run.

    Attributes:
        status: The status of its last phase before VERIFY.
        verified: Its status in VERIFY; None if it took no part.
        metadata: Rows, changed rows, seconds and reasons.
        slices: The slices that it has processed, each with its numbers.
        error: What failed, and what to do; None if nothing did.
    """

    status: str
    verified: str | None
    metadata: dict[str, Any]
    slices: dict[str, dict[str, Any]]
    error: str | None

    @property
    def is_made(self) -> bool:
        """Whether nothing failed before VERIFY."""
        return self.status not in FAILURES


def outcomes_of(document: Document) -> dict[str, TargetOutcome]:
    """Return the outcome of each target of the document of a run that the run has come to."""
    found: dict[str, list[tuple[str, Document]]] = {}
    for instance in document["instances"]:
        for phase in instance["phases"]:
            for each in phase["targets"]:
                if each["is_reached"]:
                    found.setdefault(each["name"], []).append((phase["phase"], each))
    return {name: _outcome(results, str(document["run_id"])) for name, results in found.items()}


def _outcome(results: Sequence[tuple[str, Document]], run_id: str) -> TargetOutcome:
    made = [each for phase, each in results if phase != "VERIFY"]
    verified = [each for phase, each in results if phase == "VERIFY"]
    built = [each for phase, each in results if phase == "BUILD"] or made or verified
    slices = {each["slice"]: _slice(each) for target in built for each in target["metrics"].get("slices", ())}
    error = next((each["error"] for _, each in results if each["error"]), None)
    rows = [each["metrics"]["target_records"] for each in built if "target_records" in each["metrics"]]
    metadata: dict[str, Any] = {
        "status": _worst(built),
        "reasons": "; ".join(dict.fromkeys(reason for each in built for reason in each["reasons"])),
        "seconds": round(sum(each["seconds"] for _, each in results), 3),
        "run_id": run_id,
    }
    if rows:
        metadata["dagster/row_count"] = rows[-1]
    if slices:
        metadata |= {key: sum(each[key] for each in slices.values()) for key in ("rows_in", "changed")}
    said = None if error is None else ". Do: ".join(filter(None, (error["message"], error["remedy"])))
    return TargetOutcome(_worst(made), _worst(verified) if verified else None, metadata, slices, said)


def _slice(metrics: Document) -> dict[str, Any]:
    return {
        "rows_in": metrics["records_in_slice"],
        "changed": sum(metrics[key] for key in CHANGED),
        "delta_version": metrics["delta_version"],
        "seconds": metrics["seconds"],
    }


def _worst(results: Sequence[Document]) -> str:
    statuses = {each["status"] for each in results}
    order = ("FAILED", "ABORTED", "BLOCKED", "SUCCESS_WITH_ERRORS", "SUCCESS")
    return next((each for each in order if each in statuses), "SKIPPED")
