"""Whether a target must run in a phase, and why. A target whose state is unknown runs.

Source: `lifecycles-and-phases.md`, "Dirtiness".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lakewright.errors.phrase import Command, Phrase
from lakewright.plan.observation import Answer, Observation, OutputState
from lakewright.plan.step import named_slices, slices_text
from lakewright.spec.suggestions import one_of


class BuildPolicy(StrEnum):
    """When a target is dirty in BUILD."""

    ALWAYS = "ALWAYS"
    IF_EMPTY = "IF_EMPTY"
    IF_TAINTED = "IF_TAINTED"
    IF_CHANGED = "IF_CHANGED"
    SMART = "SMART"
    COMPAT = "COMPAT"


read_build_policy = one_of(BuildPolicy, "build policy")


class Refresh(StrEnum):
    """When `apply` builds a target whose inputs it can't look at."""

    NEVER = "never"
    DAILY = "daily"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Dirtiness:
    """Whether a target must run, with at least one reason."""

    verdict: Answer
    reasons: tuple[str, ...]

    @property
    def is_to_run(self) -> bool:
        """Whether the target runs. It also runs if its verdict is unknown."""
        return self.verdict is not Answer.NO

    @classmethod
    def yes(cls, *reasons: str) -> Dirtiness:
        """Return the verdict that the target is dirty."""
        return cls(Answer.YES, reasons)

    @classmethod
    def no(cls, *reasons: str) -> Dirtiness:
        """Return the verdict that the target is clean."""
        return cls(Answer.NO, reasons)

    @classmethod
    def unknown(cls, *reasons: str) -> Dirtiness:
        """Return the verdict that it is unknown whether the target is dirty."""
        return cls(Answer.UNKNOWN, reasons)


def create_dirtiness(observation: Observation) -> Dirtiness:
    """Return whether a target must run in CREATE: its output is missing or must be migrated."""
    if observation.error is not None:
        return Dirtiness.unknown(observation.error)
    if observation.exists is Answer.NO:
        return Dirtiness.yes(OutputState.MISSING)
    if observation.exists is Answer.UNKNOWN:
        return Dirtiness.unknown("whether it exists is unknown")
    if observation.changes:
        return Dirtiness.yes(*(change.description for change in observation.changes))
    return Dirtiness.no("exists and conforms")


def build_dirtiness(
    policy: BuildPolicy,
    observation: Observation,
    *,
    each_build: str | None = None,
    is_partitioned: bool,
) -> Dirtiness:
    """Return whether a target must run in BUILD under its build policy.

    The planner adds taint and force, which override every policy, and how the last build stands.

    Args:
        policy: The target's build policy.
        observation: The state of its output and inputs.
        each_build: What each build does to rows that are there, if its mode keeps them; otherwise None.
        is_partitioned: Whether the target writes one partition only.
    """
    if policy is BuildPolicy.ALWAYS:
        return Dirtiness.yes("build policy ALWAYS")
    if policy is BuildPolicy.IF_TAINTED:
        return Dirtiness.no("build policy IF_TAINTED, and none of its dependencies has run")
    if each_build is not None and policy in (BuildPolicy.SMART, BuildPolicy.COMPAT):
        return Dirtiness.yes(each_build)
    if policy is BuildPolicy.SMART and not is_partitioned:
        return Dirtiness.yes("no partition is given, so everything is written again (build policy SMART)")
    found = _empty(observation)
    if policy is BuildPolicy.IF_CHANGED and not found.is_to_run:
        return Dirtiness.no("neither its definition nor its inputs have changed since the last build")
    return found


def _empty(observation: Observation) -> Dirtiness:
    if observation.error is not None:
        return Dirtiness.unknown(observation.error)
    if observation.exists is Answer.NO:
        return Dirtiness.yes(OutputState.MISSING)
    if observation.filled is Answer.NO:
        return Dirtiness.yes(OutputState.EMPTY)
    if observation.filled is Answer.UNKNOWN:
        return Dirtiness.unknown("whether it is filled is unknown")
    return Dirtiness.no(OutputState.FILLED)


def entity_dirtiness(observation: Observation) -> Dirtiness:
    """Return whether an entity has slices to process. The planner handles locked and failed ones."""
    if observation.error is not None:
        return Dirtiness.unknown(observation.error)
    waits = () if observation.waits_for is None else (observation.waits_for,)
    unrecorded = observation.unrecorded
    if not observation.pending and unrecorded:
        return Dirtiness.yes(*unrecorded, *observation.notes, *waits)
    if not observation.pending:
        taken = " that it takes" if observation.others else ""
        own = observation.idle or f"every slice{taken} has been processed"
        return Dirtiness.no(*(waits or (own,)), *observation.notes)
    reason = slices_text(observation.pending, "to process")
    late = observation.overtaken
    if not late:
        return Dirtiness.yes(reason, *unrecorded, *observation.notes, *waits)
    is_are = "is older and is late afterwards" if len(late) == 1 else "are older and are late afterwards"
    return Dirtiness.yes(reason, f"{named_slices(late)} {is_are}", *unrecorded, *observation.notes, *waits)


def left_slices(names: Sequence[str]) -> str:
    """Return the reason that names the slices that a run leaves to others.

    Example:
        >>> left_slices(["2024-05-02.json"])
        'leaves 1 slice to other runs: 2024-05-02.json; `lakewright apply` takes it'
    """
    it = "it" if len(names) == 1 else "them"
    return Phrase(f"leaves {slices_text(names, 'to other runs')}; ", Command("apply"), f" takes {it}")


def truncate_dirtiness(observation: Observation) -> Dirtiness:
    """Return whether a target must run in TRUNCATE: its output contains rows."""
    empty = _empty(observation)
    opposite = {Answer.YES: Answer.NO, Answer.NO: Answer.YES}
    return Dirtiness(opposite.get(empty.verdict, empty.verdict), empty.reasons)


def destroy_dirtiness(observation: Observation) -> Dirtiness:
    """Return whether a target must run in DESTROY: its output exists."""
    if observation.error is not None:
        return Dirtiness.unknown(observation.error)
    if observation.exists is Answer.NO:
        return Dirtiness.no(OutputState.MISSING)
    if observation.exists is Answer.UNKNOWN:
        return Dirtiness.unknown("whether it exists is unknown")
    return Dirtiness.yes(OutputState.PRESENT)
