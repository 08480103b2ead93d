"""Whether a target must run in a phase, and why. A target whose state is unknown runs.

Source: `lifecycles-and-phases.md`, "Dirtiness".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from lakewright.errors.phrase import Command
from lakewright.plan.observation import Answer, Observation, TableChange
from lakewright.plan.reason import Code
from lakewright.spec.reason import Reason
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
    reasons: tuple[Reason, ...]

    @property
    def is_to_run(self) -> bool:
        """Whether the target runs. It also runs if its verdict is unknown."""
        return self.verdict is not Answer.NO

    @classmethod
    def unobserved(cls, error: str) -> Dirtiness:
        """Return that it is unknown, because of an error."""
        return cls.unknown(Reason(Code.UNOBSERVED, {"why": error}))

    def plus(self, reason: Reason) -> Dirtiness:
        """Return the same verdict with another reason."""
        return replace(self, reasons=(*self.reasons, reason))

    @classmethod
    def yes(cls, *reasons: Reason) -> Dirtiness:
        """Return the verdict that the target is dirty."""
        return cls(Answer.YES, reasons)

    @classmethod
    def no(cls, *reasons: Reason) -> Dirtiness:
        """Return the verdict that the target is clean."""
        return cls(Answer.NO, reasons)

    @classmethod
    def unknown(cls, *reasons: Reason) -> Dirtiness:
        """Return the verdict that it is unknown whether the target is dirty."""
        return cls(Answer.UNKNOWN, reasons)


def create_dirtiness(observation: Observation) -> Dirtiness:
    """Return whether a target must run in CREATE: its output is missing or must be migrated."""
    absent = _absent(observation)
    if absent.is_to_run:
        return absent
    if observation.changes:
        return Dirtiness.yes(*map(change_reason, observation.changes))
    return Dirtiness.no(Reason(Code.CONFORMS))


def _absent(observation: Observation) -> Dirtiness:
    if observation.error is not None:
        return Dirtiness.unobserved(observation.error)
    if observation.exists is Answer.NO:
        return Dirtiness.yes(Reason(Code.ABSENT))
    if observation.exists is Answer.UNKNOWN:
        return Dirtiness.unknown(Reason(Code.MAY_EXIST))
    return Dirtiness.no(Reason(Code.PRESENT))


def build_dirtiness(
    policy: BuildPolicy,
    observation: Observation,
    *,
    each_build: Reason | None = None,
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
        return Dirtiness.yes(Reason(Code.POLICY, {"policy": policy.value}))
    if policy is BuildPolicy.IF_TAINTED:
        return Dirtiness.no(Reason(Code.UNTAINTED, {"policy": policy.value}))
    if each_build is not None and policy in (BuildPolicy.SMART, BuildPolicy.COMPAT):
        return Dirtiness.yes(each_build)
    if policy is BuildPolicy.SMART and not is_partitioned:
        return Dirtiness.yes(Reason(Code.WHOLE, {"policy": policy.value}))
    found = _empty(observation)
    if policy is BuildPolicy.IF_CHANGED and not found.is_to_run:
        return Dirtiness.no(Reason(Code.UNCHANGED))
    return found


def _empty(observation: Observation) -> Dirtiness:
    if observation.error is not None or observation.exists is Answer.NO:
        return _absent(observation)
    if observation.filled is Answer.NO:
        return Dirtiness.yes(Reason(Code.EMPTY))
    if observation.filled is Answer.UNKNOWN:
        return Dirtiness.unknown(Reason(Code.MAY_BE_FILLED))
    return Dirtiness.no(Reason(Code.FILLED))


def entity_dirtiness(observation: Observation) -> Dirtiness:
    """Return whether an entity has slices to process. The planner handles locked and failed ones."""
    if observation.error is not None:
        return Dirtiness.unobserved(observation.error)
    waits = observation.waits_for
    unrecorded = observation.unrecorded
    if not observation.pending and unrecorded:
        return Dirtiness.yes(*unrecorded, *observation.notes, *waits)
    if not observation.pending:
        own = observation.idle or all_processed(is_part=bool(observation.others))
        return Dirtiness.no(*(waits or (own,)), *observation.notes)
    late = observation.overtaken
    overtaken = (Reason(Code.OVERTAKEN, {"slices": late}),) if late else ()
    pending = Reason(Code.PENDING, {"slices": observation.pending})
    return Dirtiness.yes(pending, *overtaken, *unrecorded, *observation.notes, *waits)


def all_processed(*, is_part: bool) -> Reason:
    """Return that every slice was processed, or every one that a target takes."""
    return Reason(Code.ALL_PROCESSED, {"is_part": is_part})


def change_reason(change: TableChange) -> Reason:
    """Return that a migration is to be made, or was."""
    return Reason(Code.CHANGED, {"change": change.description})


def left_slices(names: Sequence[str]) -> Reason:
    """Return the reason that names the slices that a run leaves to others.

    Example:
        >>> str(left_slices(["2024-05-02.json"]))
        'leaves 1 slice to other runs: 2024-05-02.json; `lakewright apply` takes it'
    """
    return Reason(Code.LEFT, {"slices": names, "command": Command("apply")})


def truncate_dirtiness(observation: Observation) -> Dirtiness:
    """Return whether a target must run in TRUNCATE: its output contains rows."""
    return _opposite(_empty(observation))


def destroy_dirtiness(observation: Observation) -> Dirtiness:
    """Return whether a target must run in DESTROY: its output exists."""
    return _opposite(_absent(observation))


def _opposite(found: Dirtiness) -> Dirtiness:
    opposite = {Answer.YES: Answer.NO, Answer.NO: Answer.YES}
    return replace(found, verdict=opposite.get(found.verdict, found.verdict))
