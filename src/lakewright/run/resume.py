"""What a run left undone, for `--resume`.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles"; resuming is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lakewright.plan.phase import Phase
from lakewright.plan.status import Status

__all__ = ["is_undone", "unfinished"]

_NOT_REACHED = "not reached"


def unfinished(
    entries: Iterable[Mapping[str, Any]], instances: Sequence[Mapping[str, str]]
) -> frozenset[tuple[int, Phase, str]]:
    """Return the steps that failed, were blocked, interrupted or not reached, by instance, phase and target.

    Args:
        entries: The run's targets as they were recorded.
        instances: Parameters of the instances of the run to come; what the recorded run had besides is left.
    """
    index = {tuple(sorted(parameters.items())): number for number, parameters in enumerate(instances)}
    found: set[tuple[int, Phase, str]] = set()
    for entry in entries:
        number = index.get(tuple(sorted(entry["instance"].items())))
        if number is not None and is_undone(entry):
            found.add((number, Phase(entry["phase"]), entry["name"]))
    return frozenset(found)


def is_undone(entry: Mapping[str, Any]) -> bool:
    """Return whether a recorded target failed, was blocked, interrupted or not reached."""
    status = Status(entry["status"])
    is_unreached = any(reason.startswith(_NOT_REACHED) for reason in entry["reasons"])
    return status.is_failure or (status is Status.SKIPPED and is_unreached)
