"""Notices of a plan: that a step removes what others have built, and that it adds rows which are there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from lakewright.errors import Fault
from lakewright.errors.phrase import Command, Phrase
from lakewright.plan.observation import Answer
from lakewright.plan.phase import Phase
from lakewright.plan.step import Added, parameters_text
from lakewright.spec.words import counted, first_of

if TYPE_CHECKING:
    from lakewright.plan.last_build import LastBuild
    from lakewright.plan.observation import Observation
    from lakewright.plan.resource import Resource
    from lakewright.run.builds import LastBuilds
    from lakewright.targets.target import Target

__all__ = ["REMOVED_ROWS", "ROWS_ADDED_AGAIN", "lost_rows", "rows_added_again"]

REMOVED_ROWS = "removed_rows"
"""The code of the notice that a step removes what other instances have built."""

ROWS_ADDED_AGAIN = "rows_added_again"
"""The code of the notice that a target adds rows once more."""

MOST_NAMED = 3


def lost_rows(
    last_builds: LastBuilds,
    instance: tuple[str, Mapping[str, str]],
    provides: Callable[[Phase], Collection[Resource]],
    phase: Phase,
    found: Observation,
) -> Fault | None:
    """Return that a phase removes what other instances have built; None if it removes nothing of them.

    CREATE does so if it makes a table anew; TRUNCATE and DESTROY, if they are for more than one instance.

    Args:
        last_builds: Tells what was built.
        instance: The target, and the parameters of its instance.
        provides: Returns what the target makes or removes in a phase.
        phase: The phase.
        found: The state of its output.
    """
    if found.exists is Answer.NO or not (phase.is_cleanup or found.loses_rows):
        return None
    name, parameters = instance
    lost = last_builds.within(provides(phase))
    others = [
        f"{other} {parameters_text(each)}".strip()
        for other, instances in sorted(lost.items())
        for each in sorted(instances, key=parameters_text)
        if (other, dict(each)) != (name, dict(parameters))
    ]
    if not others:
        return None
    return Fault(
        f"target {name!r}: {phase} removes the rows of {counted(len(others), 'other build')}: "
        f"{first_of(others, MOST_NAMED)}",
        remedy=Phrase("Afterwards, ", Command("plan"), " says which of them are to be built again."),
        code=REMOVED_ROWS,
    )


def rows_added_again(target: Target, parameters: Mapping[str, str], last_build: LastBuild) -> Added | None:
    """Return that a target adds rows which an earlier build has added, or may have; None if it does not.

    A job without parameters adds rows in each of its runs, as that is all that it can do.
    """
    if not last_build.is_unsure and (
        not parameters or not last_build.holds_rows or last_build.begun is not None
    ):
        return None
    rows = f"its rows of {parameters_text(parameters)}" if parameters else "its rows"
    added = f"target {target.name!r} adds {rows} once more: an earlier build has added them"
    unsure = f"target {target.name!r} may add {rows} once more: a build that was cut off may have added them"
    fault = Fault(
        unsure if last_build.is_unsure else added,
        remedy="To have them once, choose the other targets with -t, or empty it first. If they are meant to "
        "come more than once, declare `buildPolicy: ALWAYS` for the target.",
        code=ROWS_ADDED_AGAIN,
    )
    return Added(fault, target.is_built_always)
