"""What was found in the lake and the manifest about one target, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from lakewright.errors import Fault
from lakewright.plan.phase import Phase

__all__ = ["Answer", "Hold", "Observation", "TableChange"]


class Answer(StrEnum):
    """A yes or no that may be unknown."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"

    @classmethod
    def of(cls, value: bool | None) -> Answer:
        """Return the answer for a truth value, None being unknown."""
        return cls.UNKNOWN if value is None else (cls.YES if value else cls.NO)


@dataclass(frozen=True, slots=True)
class TableChange:
    """One difference between the present table and the declared one.

    Attributes:
        description: What a migration would do, for a person.
        loses: What would be lost by it, or None.
    """

    description: str
    loses: str | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """What keeps an entity from going on: a lock or an unresolved failure, and what to type."""

    message: str
    error: Fault
    is_locked: bool


@dataclass(frozen=True, slots=True)
class Observation:
    """What one target's output and inputs were like when asked.

    Attributes:
        subject: What was looked at; the same text in every instance that looks at the same thing.
        exists: Whether what the target writes is there.
        filled: Whether the target's part of it holds rows.
        changes: What CREATE would have to migrate.
        pending: An entity's slices that are ready, in order.
        waiting: An entity's slices that wait for a held one.
        hold: What holds an entity back.
        notes: What else the next slice would do.
        fingerprint: Of the definition and its inputs, for `IF_CHANGED`; None where it isn't known.
        built: The fingerprint at the last successful build.
        error: Why asking failed; everything else is then unknown.
    """

    subject: str
    exists: Answer = Answer.UNKNOWN
    filled: Answer = Answer.UNKNOWN
    changes: tuple[TableChange, ...] = ()
    pending: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    hold: Hold | None = None
    notes: tuple[str, ...] = ()
    fingerprint: Mapping[str, Any] | None = None
    built: Mapping[str, Any] | None = None
    error: str | None = None

    def after(self, phase: Phase) -> Observation:
        """Return what is expected to be found once `phase` has run; what couldn't be asked stays unknown."""
        if self.error is not None:
            return self
        if phase is Phase.CREATE:
            return replace(self, exists=Answer.YES, changes=())
        if phase is Phase.BUILD:
            return replace(
                self,
                exists=Answer.YES,
                filled=Answer.YES,
                pending=(),
                notes=(),
                built=self.fingerprint,
                error=None,
            )
        if phase is Phase.TRUNCATE:
            return replace(self, filled=Answer.NO)
        if phase is Phase.DESTROY:
            return replace(self, exists=Answer.NO, filled=Answer.NO)
        return self
