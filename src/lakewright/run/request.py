"""The request for a run of a job, as a user makes it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lakewright.errors import UsageError
from lakewright.plan.permissions import Permissions
from lakewright.plan.phase import Phase, phases_until
from lakewright.targets.context import RunOptions

_FORCE = "lakewright.execution.target.forceDirty"


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A user's request for a run of a job.

    Attributes:
        phase: The last phase of its lifecycle to run.
        arguments: `p=v`, `p=v1,v2`, `p:start=…` and so on.
        is_alone: Only this phase runs, without those before it.
        targets: Selectors; only targets that one of them selects take part. See `lakewright.plan.selectors`.
        dirty: Regular expressions that match whole names; these targets run even if they are clean.
        force: Clean targets run too.
        keep_going: Targets that do not depend on a failed one still run.
        resume: Only the steps run that are left of what runs were to do.
        retry: All steps run, but appends that failed attempts at the same run have done.
        permissions: Actions that the run may take although they are refused by default.
        wait: The run waits for locks and leases of other runs.
        preview: A plan also counts the deletes that entities' next slices imply, which starts Spark.
        jobs: How many targets run at once, as far as dependencies allow; None leaves it to the job and the
            configuration.
        settles: Afterwards it is recorded which targets and entities have nothing due.
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
    retry: bool = False
    permissions: Permissions = field(default_factory=Permissions)
    wait: bool = False
    preview: bool = False
    jobs: int | None = None
    settles: bool = True

    @classmethod
    def typed(
        cls,
        job: str,
        phase: Phase,
        arguments: tuple[str, ...] = (),
        *,
        no_lifecycle: bool = False,
        allow_data_loss: bool = False,
        allow_backdated: bool = False,
        **options: Any,
    ) -> JobRequest:
        """Return the request with options as `job`, `plan` and Python name them."""
        permissions = Permissions(allow_data_loss=allow_data_loss, allow_backdated=allow_backdated)
        return cls(job, phase, arguments, is_alone=no_lifecycle, permissions=permissions, **options)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases to run."""
        return phases_until(self.phase, is_alone=self.is_alone)

    @property
    def given(self) -> dict[str, str]:
        """The arguments by name, as they were written; the history identifies a run by them."""
        return dict(argument.partition("=")[::2] for argument in self.arguments)

    @property
    def facts(self) -> dict[str, Any]:
        """What the history keeps of a choice of targets or steps."""
        choices = {"targets": list(self.targets), "no_lifecycle": self.is_alone, "resume": self.resume}
        return {name: value for name, value in choices.items() if value}

    @property
    def options(self) -> RunOptions:
        """The options that targets get from the request."""
        return RunOptions(permissions=self.permissions, wait=self.wait, preview=self.preview)

    def configured(self, config: Mapping[str, str]) -> JobRequest:
        """Return the request with the project's configuration applied: `forceDirty` forces every run."""
        return replace(self, force=self.force or config.get(_FORCE, "").strip().lower() == "true")

    def dirty_patterns(self, names: Collection[str]) -> tuple[re.Pattern[str], ...]:
        """Return the compiled patterns of `dirty`.

        Args:
            names: The names of the job's targets.

        Raises:
            UsageError: One of them is not a regular expression, or matches no target.
        """
        try:
            found = tuple(re.compile(text) for text in self.dirty)
        except re.error as error:
            raise UsageError(f"--dirty {error.pattern!r} is not a regular expression: {error}") from error
        for pattern in found:
            if not any(map(pattern.fullmatch, names)):
                raise UsageError(
                    f"--dirty {pattern.pattern} matches no target of job {self.job!r}",
                    remedy=f"Its targets: {', '.join(sorted(names))}.",
                )
        return found
