"""The phases of targets, and the lifecycles that consist of them.

Source: `lifecycles-and-phases.md`, "Execution Phases" and "Built In Lifecycles".
"""

from __future__ import annotations

from enum import StrEnum

from lakewright.errors import UsageError
from lakewright.spec.suggestions import hint


class Phase(StrEnum):
    """One stage of a target's life."""

    VALIDATE = "VALIDATE"
    CREATE = "CREATE"
    BUILD = "BUILD"
    VERIFY = "VERIFY"
    TRUNCATE = "TRUNCATE"
    DESTROY = "DESTROY"

    @classmethod
    def named(cls, text: str) -> Phase:
        """Return the phase with this name, in any case.

        Raises:
            UsageError: There is no such phase.
        """
        known = [phase.lower() for phase in cls]
        if text.lower() in known:
            return cls(text.upper())
        what = "the phase is missing before {!r}" if "=" in text else "{!r} is not a phase"
        raise UsageError(f"{what.format(text)}; {hint(text, known)}")

    @property
    def is_cleanup(self) -> bool:
        """Whether the phase removes data, so that dependents run before their dependencies."""
        return self in (Phase.TRUNCATE, Phase.DESTROY)


LIFECYCLES: tuple[tuple[Phase, ...], ...] = (
    (Phase.VALIDATE, Phase.CREATE, Phase.BUILD, Phase.VERIFY),
    (Phase.TRUNCATE,),
    (Phase.DESTROY,),
)


def phases_until(last: Phase, *, is_alone: bool = False) -> tuple[Phase, ...]:
    """Return the phases that run up to and including `last`: those of its lifecycle, or only `last` itself.

    Example:
        >>> [str(phase) for phase in phases_until(Phase.BUILD)]
        ['VALIDATE', 'CREATE', 'BUILD']
    """
    if is_alone:
        return (last,)
    lifecycle = next(phases for phases in LIFECYCLES if last in phases)
    return lifecycle[: lifecycle.index(last) + 1]
