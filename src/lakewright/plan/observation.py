"""Observations: the state of a target in the lake and the manifest before any step runs."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from enum import StrEnum

from lakewright.errors import Fault
from lakewright.plan.phase import Phase
from lakewright.spec.reason import Reason


class Answer(StrEnum):
    """Yes, no or unknown."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"

    @classmethod
    def of(cls, value: bool | None) -> Answer:
        """Return the answer for a truth value. None means unknown."""
        return cls.UNKNOWN if value is None else (cls.YES if value else cls.NO)


@dataclass(frozen=True, slots=True)
class TableChange:
    """One change that makes the existing table the declared one.

    Attributes:
        description: The effect of the migration, as text for users.
        loses: The data that the migration would lose, or None.
        empties: Whether the table has no rows afterwards.
    """

    description: str
    loses: str | None = None
    empties: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """The obstacle to an entity's slices: a lock or an unresolved failure.

    Attributes:
        error: What it is; its remedy is the command to run.
        is_locked: Whether another run has locked the item, in contrast to a failure.
    """

    error: Fault
    is_locked: bool


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of one target's output and inputs.

    Attributes:
        subject: Identifies the output and inputs. Instances that observe the same ones have the same subject.
        exists: Whether the target's output exists.
        filled: Whether the target's part of the output contains rows.
        changes: The migrations that CREATE would have to make.
        refusal: Why CREATE would refuse to make them, or None.
        pending: The entity's slices that can be processed, in order.
        waiting: The entity's slices that wait for a locked or failed one, or for another application.
        waits_for: What slices wait for; empty if they wait for no application.
        others: Slices that the target leaves to other targets and instances.
        late: That others are late, so that every run refuses them, with what to type; None if none is.
        recovered: Slices that are in the output's log and not in the manifest; the run first records it.
        unrecorded: What the run records of the output before it processes slices.
        overtaken: Those of `others` that are older than a pending slice, and late once that is processed.
        hold: The lock or failure that blocks the entity.
        idle: Why an entity has no slice to process, or None for the usual reason.
        is_disabled: Whether the entity is disabled, so that no phase does anything.
        notes: Further effects of the next slice, and what else a user may want to know.
        warning: What an operator should look at although nothing fails, or None.
        error: Why the observation failed. Everything else is then unknown.
    """

    subject: str
    exists: Answer = Answer.UNKNOWN
    filled: Answer = Answer.UNKNOWN
    changes: tuple[TableChange, ...] = ()
    refusal: Fault | None = None
    pending: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    waits_for: tuple[Reason, ...] = ()
    others: tuple[str, ...] = ()
    late: Reason | None = None
    recovered: tuple[str, ...] = ()
    unrecorded: tuple[Reason, ...] = ()
    overtaken: tuple[str, ...] = ()
    hold: Hold | None = None
    idle: Reason | None = None
    is_disabled: bool = False
    notes: tuple[Reason, ...] = ()
    warning: Fault | None = None
    error: str | None = None

    @property
    def is_replaced(self) -> bool:
        """Whether CREATE would replace the table with an empty one."""
        return any(change.empties for change in self.changes)

    @property
    def loses_rows(self) -> bool:
        """Whether CREATE would replace a table that may have rows."""
        return any(change.empties and change.loses is not None for change in self.changes)

    def after(self, phase: Phase) -> Observation:
        """Return the expected observation after `phase` has run. A failed observation stays unknown."""
        if self.error is not None:
            return self
        if phase is Phase.CREATE:
            filled = Answer.NO if self.is_replaced else self.filled
            return replace(self, exists=Answer.YES, filled=filled, changes=(), refusal=None)
        if phase is Phase.BUILD:
            return replace(
                self,
                exists=Answer.YES,
                filled=Answer.YES,
                pending=(),
                recovered=(),
                unrecorded=(),
                idle=None,
                overtaken=(),
                notes=(),
                warning=None,
                error=None,
            )
        if phase is Phase.TRUNCATE:
            return replace(self, filled=Answer.NO)
        if phase is Phase.DESTROY:
            return replace(self, exists=Answer.NO, filled=Answer.NO)
        return self

    def without_slices(self, processed: Set[str]) -> Observation:
        """Return the expected observation after another target or instance has processed these slices."""
        return replace(
            self,
            exists=Answer.YES,
            filled=Answer.YES,
            pending=tuple(name for name in self.pending if name not in processed),
            others=tuple(name for name in self.others if name not in processed),
            overtaken=tuple(name for name in self.overtaken if name not in processed),
            notes=(),
        )
