"""What a recorded run left undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.plan.step import StepKey

__all__ = ["Leftovers", "is_built", "is_entry_undone", "tells_outcome"]

_DONE = (Status.SUCCESS.value, Status.SUCCESS_WITH_ERRORS.value)
"""Statuses of a recorded target that has done its work."""


@dataclass(frozen=True, slots=True)
class Leftovers:
    """The steps that a resumed run has to run; `in` tests whether a step is one of them.

    Attributes:
        done: Steps that the recorded run finished.
        undone: Steps that failed, were blocked, interrupted or not reached in it.
        is_whole: Whether the run recorded every step; a killed run did not.
    """

    done: frozenset[StepKey] = field(default=frozenset())
    undone: frozenset[StepKey] = field(default=frozenset())
    is_whole: bool = True

    @classmethod
    def of(
        cls,
        entries: Iterable[Mapping[str, Any]],
        instances: Sequence[Mapping[str, str]],
        *,
        is_whole: bool,
    ) -> Leftovers:
        """Return what a recorded run left undone, by the indexes of these instances.

        Args:
            entries: The recorded targets of the run.
            instances: Parameters of the instances of the resumed run; other recorded instances are left out.
            is_whole: Whether the recorded run finished.
        """
        index = _index(instances)
        found: dict[bool, set[StepKey]] = {True: set(), False: set()}
        for entry in entries:
            number = index.get(tuple(sorted(entry["instance"].items())))
            if number is not None:
                found[is_entry_undone(entry)].add((number, Phase(entry["phase"]), entry["name"]))
        return cls(frozenset(found[False]), frozenset(found[True]), is_whole)

    def beside(self, built: Iterable[Mapping[str, Any]], instances: Sequence[Mapping[str, str]]) -> Leftovers:
        """Return what is left if targets were built meanwhile, given by their recorded results."""
        index = _index(instances)
        done = set()
        for entry in built:
            number = index.get(tuple(sorted(entry["instance"].items())))
            if number is not None:
                done.add((number, Phase(entry["phase"]), entry["name"]))
        return self.after(Leftovers(frozenset(done)))

    def after(self, later: Leftovers) -> Leftovers:
        """Return what is left after a later run, which may have done steps or left others undone."""
        return replace(
            self,
            done=(self.done - later.undone) | later.done,
            undone=(self.undone - later.done) | later.undone,
        )

    def __contains__(self, step: object) -> bool:
        """Return whether a step has to run again."""
        return step in self.undone or (not self.is_whole and step not in self.done)


def _index(instances: Sequence[Mapping[str, str]]) -> dict[tuple[tuple[str, str], ...], int]:
    return {tuple(sorted(parameters.items())): number for number, parameters in enumerate(instances)}


def tells_outcome(entry: Mapping[str, Any]) -> bool:
    """Return whether a recorded target was done or left undone, and not skipped for another reason."""
    return Status(entry["status"]) is not Status.SKIPPED or is_entry_undone(entry)


def is_built(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry of the history says that a target was built."""
    return entry["phase"] == Phase.BUILD.value and entry["status"] in _DONE


def is_entry_undone(entry: Mapping[str, Any]) -> bool:
    """Return whether a recorded target failed, was blocked, interrupted or not reached."""
    is_reached = entry.get("is_reached")
    if is_reached is None:  # earlier versions recorded it in words
        is_reached = not any(reason.startswith("not reached") for reason in entry["reasons"])
    return Status(entry["status"]).is_failure or not is_reached
