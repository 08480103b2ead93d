"""What building a target again leaves in its output, so that rows of before stay."""

from __future__ import annotations

from lakewright.relations.relation import OutputMode

__all__ = ["kept_by"]

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
