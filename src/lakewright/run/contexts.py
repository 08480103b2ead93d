"""Contexts of a job's instances, made when they are needed and let go when their instance has ended.

However many instances a run has, it keeps those alone that are being worked on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from lakewright.targets.context import Context

__all__ = ["Contexts"]


@dataclass(slots=True)
class Contexts:
    """The instances of a job.

    Attributes:
        parameters: Of each instance, as text.
        make: Makes the context of the instance with that number, with definitions resolved for it alone.
    """

    parameters: Sequence[Mapping[str, str]]
    make: Callable[[int], Context]
    _made: dict[int, Context] = field(default_factory=dict, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def __len__(self) -> int:
        """Return how many instances there are."""
        return len(self.parameters)

    def of(self, index: int) -> Context:
        """Return the context of an instance, the same until it is released."""
        with self._lock:
            if index not in self._made:
                self._made[index] = self.make(index)
            return self._made[index]

    def release(self, index: int) -> None:
        """Let an instance's context go, with all that it keeps."""
        with self._lock:
            context = self._made.pop(index, None)
        if context is not None:
            context.workspace.close()
