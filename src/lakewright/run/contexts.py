"""The contexts of the instances of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from lakewright.targets.context import Context

__all__ = ["Contexts"]


@dataclass(slots=True)
class Contexts:
    """The contexts of a job's instances, created on first use and closed when the instance has finished.

    However many instances a run has, only those in progress are kept in memory.

    Attributes:
        parameters: The parameters of each instance, as text.
        make: Creates the context of an instance by its index, with definitions resolved for it alone.
    """

    parameters: Sequence[Mapping[str, str]]
    make: Callable[[int], Context]
    _made: dict[int, Context] = field(default_factory=dict, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def __len__(self) -> int:
        """Return the number of instances."""
        return len(self.parameters)

    def of(self, index: int) -> Context:
        """Return the context of an instance, the same one until it is released."""
        with self._lock:
            if index not in self._made:
                self._made[index] = self.make(index)
            return self._made[index]

    def release(self, index: int) -> None:
        """Close the context of an instance."""
        with self._lock:
            context = self._made.pop(index, None)
        if context is not None:
            context.workspace.close()
