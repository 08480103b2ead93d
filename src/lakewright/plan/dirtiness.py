"""Whether a target must run in a phase, and why. Unknown runs.

Source: `lifecycles-and-phases.md`, "Dirtiness".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lakewright.plan.observation import Answer, Observation

__all__ = [
    "BuildPolicy",
    "Dirtiness",
    "build_dirtiness",
    "create_dirtiness",
    "destroy_dirtiness",
    "entity_dirtiness",
    "truncate_dirtiness",
]


class BuildPolicy(StrEnum):
    """When a target is dirty in BUILD."""

    ALWAYS = "ALWAYS"
    IF_EMPTY = "IF_EMPTY"
    IF_TAINTED = "IF_TAINTED"
    IF_CHANGED = "IF_CHANGED"
    SMART = "SMART"
    COMPAT = "COMPAT"

    @classmethod
    def parse(cls, text: str) -> BuildPolicy:
        """Return the policy that a text names; case and underscores don't matter.

        Raises:
            ValueError: There is no such policy.

        Example:
            >>> BuildPolicy.parse("ifEmpty").value
            'IF_EMPTY'
        """
        wanted = text.replace("_", "").lower()
        for policy in cls:
            if policy.value.replace("_", "").lower() == wanted:
                return policy
        raise ValueError(f"no build policy {text!r}; there are {', '.join(cls)}")


@dataclass(frozen=True, slots=True)
class Dirtiness:
    """Whether a target must run, with at least one reason for it."""

    verdict: Answer
    reasons: tuple[str, ...]

    @property
    def is_to_run(self) -> bool:
        """Whether the target runs: what is unknown runs too."""
        return self.verdict is not Answer.NO

    @classmethod
    def yes(cls, *reasons: str) -> Dirtiness:
        """Return that the target must run."""
        return cls(Answer.YES, reasons)

    @classmethod
    def no(cls, *reasons: str) -> Dirtiness:
        """Return that the target is clean."""
        return cls(Answer.NO, reasons)

    @classmethod
    def unknown(cls, *reasons: str) -> Dirtiness:
        """Return that it could not be found out."""
        return cls(Answer.UNKNOWN, reasons)


def create_dirtiness(observation: Observation) -> Dirtiness:
    """Return whether a target must run in CREATE: it is missing, or must be migrated."""
    if observation.error is not None:
        return Dirtiness.unknown(observation.error)
    if observation.exists is Answer.NO:
        return Dirtiness.yes("does not exist")
    if observation.exists is Answer.UNKNOWN:
        return Dirtiness.unknown("whether it exists is unknown")
    if observation.changes:
        return Dirtiness.yes(*(change.description for change in observation.changes))
    return Dirtiness.no("exists and conforms")


def build_dirtiness(
    policy: BuildPolicy,
    observation: Observation,
    *,
    is_append: bool,
    is_partitioned: bool,
) -> Dirtiness:
    """Return whether a target must run in BUILD, by its policy.

    Taint and force are not asked here; they win over every policy.
    """
    if policy is BuildPolicy.ALWAYS:
        return Dirtiness.yes("build policy ALWAYS")
    if policy is BuildPolicy.IF_TAINTED:
        return Dirtiness.no("build policy IF_TAINTED, and nothing that it depends on has run")
    if is_append and policy in (BuildPolicy.SMART, BuildPolicy.COMPAT):
        return Dirtiness.yes("output mode APPEND adds rows at every build")
    if policy is BuildPolicy.SMART and not is_partitioned:
        return Dirtiness.yes("no partition is given, so the whole is written again (build policy SMART)")
    if policy is BuildPolicy.IF_CHANGED:
        return _changed(observation)
    return _empty(observation)


def _empty(observation: Observation) -> Dirtiness:
    if observation.error is not None:
        return Dirtiness.unknown(observation.error)
    if observation.exists is Answer.NO:
        return Dirtiness.yes("does not exist")
    if observation.filled is Answer.NO:
        return Dirtiness.yes("is empty")
    if observation.filled is Answer.UNKNOWN:
        return Dirtiness.unknown("whether it is filled is unknown")
    return Dirtiness.no("is filled")


def _changed(observation: Observation) -> Dirtiness:
    empty = _empty(observation)
    if empty.is_to_run:
        return empty
    if observation.fingerprint is None:
        return Dirtiness.unknown("its inputs can't be told apart by version, so they may have changed")
    if observation.built is None:
        return Dirtiness.yes("no successful build is recorded")
    changed = _differences(observation)
    if changed:
        return Dirtiness.yes(*(f"{name} has changed since the last build" for name in changed))
    return Dirtiness.no("neither its definition nor its inputs have changed since the last build")


def _differences(observation: Observation) -> list[str]:
    now, built = observation.fingerprint or {}, observation.built or {}
    return sorted(name for name in {*now, *built} if now.get(name) != built.get(name))


def entity_dirtiness(observation: Observation) -> Dirtiness:
    """Return whether an entity has slices to process; what is held is the plan's to say."""
    if observation.error is not None:
        return Dirtiness.unknown(observation.error)
    if observation.pending:
        count = len(observation.pending)
        named = ", ".join(observation.pending[:3]) + (", …" if count > 3 else "")
        return Dirtiness.yes(
            f"{count} {'slice' if count == 1 else 'slices'} to process: {named}", *observation.notes
        )
    return Dirtiness.no("every slice has been processed")


def truncate_dirtiness(observation: Observation) -> Dirtiness:
    """Return whether there is anything to empty."""
    if observation.error is not None:
        return Dirtiness.unknown(observation.error)
    if observation.exists is Answer.NO:
        return Dirtiness.no("does not exist")
    if observation.filled is Answer.NO:
        return Dirtiness.no("is empty")
    if observation.filled is Answer.UNKNOWN:
        return Dirtiness.unknown("whether it is filled is unknown")
    return Dirtiness.yes("is filled")


def destroy_dirtiness(observation: Observation) -> Dirtiness:
    """Return whether there is anything to remove."""
    if observation.error is not None:
        return Dirtiness.unknown(observation.error)
    if observation.exists is Answer.NO:
        return Dirtiness.no("does not exist")
    if observation.exists is Answer.UNKNOWN:
        return Dirtiness.unknown("whether it exists is unknown")
    return Dirtiness.yes("exists")
