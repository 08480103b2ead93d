"""What a run of a job is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from lakewright.errors import UsageError
from lakewright.plan.permissions import Permissions
from lakewright.plan.phase import Phase, phases_until

__all__ = ["JobRequest"]


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What a run of a job is asked for.

    Attributes:
        phase: The last phase of its lifecycle that is to run.
        arguments: `p=v`, `p=v1,v2`, `p:start=…` and so on.
        is_alone: Only that phase, not those before it.
        targets: Only targets that one of these chooses take part; see `lakewright.plan.selectors`.
        dirty: Regular expressions of whole names; these targets run though they are clean.
        resume: Only what the last run with these arguments left undone.
        permissions: What the run may do that is refused by default.
        preview: A plan also counts the deletes that entities' next slices imply, which takes Spark.
        jobs: How many targets run side by side, where nothing orders them; None leaves it to the job and the
            configuration.
    """

    job: str
    phase: Phase
    arguments: tuple[str, ...] = ()
    is_alone: bool = False
    targets: tuple[str, ...] = ()
    dirty: tuple[str, ...] = ()
    force: bool = False
    keep_going: bool = False
    resume: bool = False
    permissions: Permissions = field(default_factory=Permissions)
    wait: bool = False
    preview: bool = False
    jobs: int | None = None

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases that are to run."""
        return phases_until(self.phase, is_alone=self.is_alone)

    @property
    def given(self) -> dict[str, str]:
        """The arguments by name, as they were written; by this a run is known in the history."""
        return dict(argument.partition("=")[::2] for argument in self.arguments)

    def dirty_patterns(self) -> tuple[re.Pattern[str], ...]:
        """Return the patterns of `dirty`.

        Raises:
            UsageError: One is no regular expression.
        """
        return _patterns("--dirty", self.dirty)


def _patterns(option: str, texts: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    try:
        return tuple(re.compile(text) for text in texts)
    except re.error as error:
        raise UsageError(f"{option} {error.pattern!r} is no regular expression: {error}") from error
