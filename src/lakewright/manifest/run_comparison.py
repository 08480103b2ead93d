"""Comparing two runs: the status, duration, reasons, metrics and errors of their targets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lakewright.manifest.plain_values import document_of

Entry = Mapping[str, Any]
"""The JSON value that the journal stores for a target of a run."""

_PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True, slots=True)
class TargetDifference:
    """One target in one phase of one instance, in two runs; None where a run does not have it.

    Attributes:
        status: In both runs.
        seconds: In both runs.
        reasons: In both runs.
        metrics: Those that differ, with their values in both runs.
        error: The messages in both runs.
    """

    name: str
    phase: str
    instance: Mapping[str, str]
    status: tuple[str | None, str | None]
    seconds: tuple[float | None, float | None]
    reasons: tuple[tuple[str, ...], tuple[str, ...]]
    metrics: Mapping[str, tuple[Any, Any]]
    error: tuple[str | None, str | None]

    @property
    def is_same(self) -> bool:
        """Whether everything except the duration is the same."""
        return (
            all(len(set(pair)) == 1 for pair in (self.status, self.reasons, self.error)) and not self.metrics
        )

    def as_json(self) -> dict[str, Any]:
        """Return the difference as `history diff -o json` prints it."""
        return {"same": self.is_same, **document_of(self)}


def compare_runs(before: Iterable[Entry], after: Iterable[Entry]) -> list[TargetDifference]:
    """Return the targets of two runs, in the order of the first run, then of the second."""
    sides = [{_identity(entry): entry for entry in entries} for entries in (before, after)]
    identities = dict.fromkeys(identity for side in sides for identity in side)
    return [_difference(sides[0].get(identity), sides[1].get(identity)) for identity in identities]


def _identity(entry: Entry) -> tuple[str, str, str]:
    return (json.dumps(entry["instance"], sort_keys=True), entry["phase"], entry["name"])


def _difference(before: Entry | None, after: Entry | None) -> TargetDifference:
    either = before or after or {}
    first, second = before or {}, after or {}
    return TargetDifference(
        name=either["name"],
        phase=either["phase"],
        instance=either["instance"],
        status=(first.get("status"), second.get("status")),
        seconds=(first.get("seconds"), second.get("seconds")),
        reasons=(tuple(first.get("reasons", ())), tuple(second.get("reasons", ()))),
        metrics=dict(_metrics(_measures(first), _measures(second))),
        error=(_message(first), _message(second)),
    )


def _metrics(before: Entry, after: Entry) -> Iterable[tuple[str, tuple[Any, Any]]]:
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield name, (before.get(name), after.get(name))


def _measures(entry: Entry) -> dict[str, Any]:
    """Return the metrics of a target that are single values, and the number of its slices."""
    metrics = entry.get("metrics") or {}
    plain = {name: value for name, value in metrics.items() if isinstance(value, _PLAIN)}
    slices = metrics.get("slices")
    return {**plain, **({"slices": len(slices)} if isinstance(slices, list) else {})}


def _message(entry: Entry) -> str | None:
    error = entry.get("error")
    return str(error["message"]) if isinstance(error, Mapping) else None
