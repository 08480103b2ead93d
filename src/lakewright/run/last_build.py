"""What a run knows of the builds of its instances before it plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from lakewright.plan.resource import Resource
    from lakewright.spec.models.job import Job

__all__ = ["NOTHING", "LastBuild", "LastBuilds", "NoBuilds"]


@dataclass(frozen=True, slots=True)
class LastBuild:
    """How the last build of an instance stands.

    Attributes:
        stale: Why it is to be built again, as text; None if it is not, or was never built.
        begun: The identity of an append that has begun, and of which no end is recorded.
        holds_rows: Whether what it has written is there.
        is_unsure: Whether nobody knows if an append that was cut off has added its rows.
        order: When it was recorded, as a text that sorts with the keys of runs.
    """

    stale: str | None = None
    begun: str | None = None
    holds_rows: bool = False
    is_unsure: bool = False
    order: str = ""


NOTHING = LastBuild()
"""Of what was never built."""


class LastBuilds(Protocol):
    """Tells how builds stand."""

    def of(self, job: Job, target: str, parameters: Mapping[str, str]) -> LastBuild:
        """Return how the last build of an instance stands."""
        ...

    def within(self, places: Collection[Resource]) -> Mapping[str, list[Mapping[str, str]]]:
        """Return the builds whose rows are all in some places: the instances, by the names of targets."""
        ...


class NoBuilds:
    """The builds of a run without a manifest: none."""

    def of(self, job: Job, target: str, parameters: Mapping[str, str]) -> LastBuild:
        """Return that nothing was built."""
        return NOTHING

    def within(self, places: Collection[Resource]) -> Mapping[str, list[Mapping[str, str]]]:
        """Return nothing."""
        return {}
