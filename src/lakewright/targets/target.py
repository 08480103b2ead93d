"""What every target is: work in some phases, with what it requires, provides, finds and does there."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, field_validator
from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.plan.dirtiness import (
    BuildPolicy,
    Dirtiness,
    build_dirtiness,
    create_dirtiness,
    destroy_dirtiness,
    truncate_dirtiness,
)
from lakewright.plan.observation import Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.spec.expressions.values import Duration
from lakewright.spec.models.base import Named, Reference, Texts
from lakewright.spec.models.documentation import Documentation
from lakewright.targets.context import Context
from lakewright.targets.defaults import TargetDefaults, VerifyPolicy

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["BuildPolicyText", "Target", "VerifyPolicyText"]

BuildPolicyText = Annotated[
    BuildPolicy, BeforeValidator(lambda text: BuildPolicy.parse(text) if isinstance(text, str) else text)
]
VerifyPolicyText = Annotated[
    VerifyPolicy, BeforeValidator(lambda text: VerifyPolicy.parse(text) if isinstance(text, str) else text)
]
DurationText = Annotated[
    Duration, BeforeValidator(lambda text: Duration.parse(text) if isinstance(text, str) else text)
]


class Target(Named):
    """A target as declared."""

    description: str | None = Declared(default=None, description="What it makes, for people.")
    before: Texts = Declared(default=(), description="Targets that run after this one.")
    after: Texts = Declared(default=(), description="Targets that run before this one, and taint it.")
    enabled: bool = Declared(default=True, description="Whether it takes part at all.")
    build_policy: BuildPolicyText | None = Declared(default=None, description="When it is dirty in BUILD.")
    verify_policy: VerifyPolicyText | None = Declared(
        default=None, description="What emptiness means in VERIFY."
    )
    retries: int = Declared(default=0, ge=0, description="Further attempts where trying again may succeed.")
    timeout: DurationText | None = Declared(
        default=None, description="Longest time a phase may take, PT1H for one."
    )
    documentation: Documentation | None = Declared(
        default=None, exclude=True, description="What the documentation shows; checks."
    )
    metadata: Any = Declared(default=None, description="Labels of the author's own.")

    @field_validator("timeout")
    @classmethod
    def _fixed(cls, timeout: Duration | None) -> Duration | None:
        if timeout is not None and timeout.exact <= timedelta(0):
            raise ValueError("the time must be longer than nothing")
        return timeout

    @classmethod
    def named(cls, workspace: Workspace, name: str) -> Target:
        """Return a target of the project.

        Raises:
            SpecError: There is none of that name.
        """
        found = workspace.target(name)
        if not isinstance(found, Target):
            raise SpecError.of(f"{name!r} is no target")
        return found

    def links(self) -> Iterable[Reference]:
        """Return the targets of `before` and `after`."""
        for field, names in (("before", self.before), ("after", self.after)):
            for index, name in enumerate(names):
                yield Reference("target", name, (field, index))

    def mentions(self) -> Iterable[Reference]:
        """Return what its checks refer to."""
        return () if self.documentation is None else self.documentation.references()

    @property
    def label(self) -> str:
        """The target in messages."""
        return f"target {self.name!r}"

    def labels(self, workspace: Workspace) -> frozenset[str]:
        """Return the labels by which it can be chosen: `key` and `key=value` of each."""
        del workspace
        labels = (self.metadata or {}).get("labels") or {}
        return frozenset(text for key, value in labels.items() for text in (key, f"{key}={value}"))

    @abstractmethod
    def phases(self) -> frozenset[Phase]:
        """Return the phases in which there is something to do."""

    def phases_in(self, workspace: Workspace) -> frozenset[Phase]:
        """Return these phases, and those that what it names brings along."""
        del workspace
        return self.phases()

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return what must be there before the target runs in a phase."""
        del workspace, phase
        return frozenset()

    def provides(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return what is there once the target has run in a phase, or in TRUNCATE and DESTROY isn't."""
        del workspace, phase
        return frozenset()

    def observe(self, context: Context) -> Observation:
        """Return what is found before anything runs; nothing is changed by asking."""
        del context
        return Observation(f"target:{self.name}")

    def dirtiness(self, phase: Phase, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether the target must run in a phase, given what is found; pure.

        Source: `lifecycles-and-phases.md`, "Dirtiness".
        """
        if phase is Phase.CREATE:
            return create_dirtiness(observation)
        if phase is Phase.BUILD:
            return self.build_dirtiness(observation, defaults)
        if phase is Phase.TRUNCATE:
            return truncate_dirtiness(observation)
        if phase is Phase.DESTROY:
            return destroy_dirtiness(observation)
        return Dirtiness.yes(f"{phase} always runs")

    def build_dirtiness(self, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether the target must run in BUILD."""
        policy = self.build_policy or defaults.build_policy
        return build_dirtiness(policy, observation, is_append=False, is_partitioned=False)

    @abstractmethod
    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Do the target's work in a phase.

        Raises:
            LakewrightError: It could not be done; nothing is half done for readers.
        """
