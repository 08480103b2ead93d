"""What building a target again leaves in its output, so that rows of before stay."""

from __future__ import annotations

from dataclasses import replace

from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.observation import Answer, Observation
from lakewright.relations.relation import OutputMode

__all__ = ["kept_by", "telling_refusal"]

_KEPT = {
    OutputMode.APPEND: "a build adds its rows to those that are there",
    OutputMode.UPDATE: "a build takes no rows out",
    OutputMode.OVERWRITE_DYNAMIC: "a build keeps the partitions of which it has no rows",
    OutputMode.IGNORE_IF_EXISTS: "a build writes nothing while rows are there",
    OutputMode.ERROR_IF_EXISTS: "a build fails while rows are there",
}


def kept_by(mode: OutputMode) -> str | None:
    """Return why a build with an output mode does not replace all that an earlier one wrote; None if it does.

    Example:
        >>> kept_by(OutputMode.UPDATE)
        'a build takes no rows out (mode UPDATE)'
    """
    words = _KEPT.get(mode)
    return None if words is None else f"{words} (mode {mode.value})"


def telling_refusal(found: Dirtiness, mode: OutputMode, observation: Observation) -> Dirtiness:
    """Return a target's dirtiness with what `ERROR_IF_EXISTS` does about the rows that are there.

    The build policy decides first: most of them leave a filled target as it is, so that nothing fails.
    """
    if mode is not OutputMode.ERROR_IF_EXISTS or observation.filled is not Answer.YES:
        return found
    if found.is_to_run:
        return replace(
            found, reasons=(*found.reasons, f"the build fails: rows are there (mode {mode.value})")
        )
    told = f"mode {mode.value} does not fail, as the build policy leaves it: `buildPolicy: ALWAYS` would"
    return replace(found, reasons=(*found.reasons, told))
