"""What a run left undone, for `--resume`.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles"; resuming is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.plan.step import StepKey
from lakewright.run.result import is_undone

__all__ = ["Leftovers", "is_entry_undone"]


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Which steps a run to come has to take up again.

    Attributes:
        done: Steps that the recorded run ended.
        undone: Steps that failed, were blocked, interrupted or not reached in it.
        is_whole: Whether the recorded run told of every step; one that was killed didn't.
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
        """Return what a run left, by the numbers of these instances.

        Args:
            entries: The run's targets as they were recorded.
            instances: Parameters of the instances of the run to come; what the recorded run had besides is
                left out.
            is_whole: Whether that run came to its end.
        """
        index = {tuple(sorted(parameters.items())): number for number, parameters in enumerate(instances)}
        found: dict[bool, set[StepKey]] = {True: set(), False: set()}
        for entry in entries:
            number = index.get(tuple(sorted(entry["instance"].items())))
            if number is not None:
                found[is_entry_undone(entry)].add((number, Phase(entry["phase"]), entry["name"]))
        return cls(frozenset(found[False]), frozenset(found[True]), is_whole)

    def __contains__(self, step: object) -> bool:
        """Return whether a step is to be taken up again."""
        return step in self.undone or (not self.is_whole and step not in self.done)


def is_entry_undone(entry: Mapping[str, Any]) -> bool:
    """Return whether a recorded target failed, was blocked, interrupted or not reached."""
    return is_undone(Status(entry["status"]), entry["reasons"])
