"""The base class of targets: the phases, dependencies, observation and work of a target."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field as Declared
from pydantic import WithJsonSchema, field_validator

from lakewright.errors import SpecError, VerificationError
from lakewright.lake.spark_errors import located_rejection
from lakewright.plan.dirtiness import (
    BuildPolicy,
    Dirtiness,
    Refresh,
    build_dirtiness,
    create_dirtiness,
    destroy_dirtiness,
    read_build_policy,
    truncate_dirtiness,
)
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.resource import Resource
from lakewright.spec.expressions.values import Duration
from lakewright.spec.models.base import Named, Reference, Texts, from_text
from lakewright.spec.models.documentation import Documentation
from lakewright.spec.reason import Reason
from lakewright.spec.suggestions import one_of
from lakewright.targets.context import Context, TargetDefaults, VerifyPolicy, read_verify_policy
from lakewright.targets.lease import hold_leases
from lakewright.workspace.readable_parts import check_partition_values

if TYPE_CHECKING:
    from lakewright.plan.step import Append
    from lakewright.workspace.readable_parts import ReadableRelation
    from lakewright.workspace.workspace import Workspace


BuildPolicyText = Annotated[BuildPolicy, from_text(read_build_policy)]
RefreshText = Annotated[Refresh, from_text(one_of(Refresh, "refresh"))]
VerifyPolicyText = Annotated[VerifyPolicy, from_text(read_verify_policy)]
DurationText = Annotated[Duration, from_text(Duration.parse), WithJsonSchema({"type": "string"})]


class Target(Named):
    """A unit of work that a job takes through the phases.

    Attributes:
        own_phases: The phases in which targets of this kind have work.
        feeds_others: Whether other targets may read what targets of this kind write.
        always_builds: Whether each BUILD runs, as nothing that it leaves shows a later one that it is done.
    """

    own_phases: ClassVar[frozenset[Phase]] = frozenset()
    feeds_others: ClassVar[bool] = True
    always_builds: ClassVar[bool] = False

    description: str | None = Declared(default=None, description="Description for people.")
    before: Texts = Declared(default=(), description="Targets that run after this one.")
    after: Texts = Declared(default=(), description="Targets that run before this one, and taint it.")
    enabled: bool = Declared(default=True, description="Whether the target takes part in runs.")
    build_policy: BuildPolicyText | None = Declared(
        default=None, description="When the target is dirty in BUILD."
    )
    refresh: RefreshText = Declared(
        default=Refresh.NEVER,
        description="When `apply` builds the target if it can't observe its inputs.",
    )
    verify_policy: VerifyPolicyText | None = Declared(
        default=None, description="Whether VERIFY accepts an empty result."
    )
    retries: int = Declared(
        default=0, ge=0, description="Further attempts after an error that may be temporary."
    )
    timeout: DurationText | None = Declared(
        default=None, description="Longest time for a phase, such as PT1H."
    )
    documentation: Documentation | None = Declared(
        default=None, exclude=True, description="Descriptions and checks for the documentation."
    )
    metadata: Any = Declared(default=None, description="Labels for selecting targets.")

    @field_validator("timeout")
    @classmethod
    def _check_timeout(cls, timeout: Duration | None) -> Duration | None:
        if timeout is not None and timeout.exact <= timedelta(0):
            raise ValueError("the timeout must be longer than zero")
        return timeout

    @classmethod
    def named(cls, workspace: Workspace, name: str) -> Target:
        """Return the project's target of that name.

        Raises:
            SpecError: No target has that name.
        """
        found = workspace.target(name)
        if not isinstance(found, Target):
            raise SpecError.of(f"{name!r} is not a target")
        return found

    def links(self) -> Iterable[Reference]:
        """Return references to the targets in `before` and `after`."""
        for field, names in (("before", self.before), ("after", self.after)):
            for index, name in enumerate(names):
                yield Reference("target", name, (field, index))

    def targets_before(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the targets that run before this one, and taint it when they run."""
        return self.after

    @property
    def label(self) -> str:
        """The target as messages name it."""
        return f"target {self.name!r}"

    def located(
        self, workspace: Workspace, what: str = "", path: Sequence[str | int] = ()
    ) -> AbstractContextManager[None]:
        """Raise what Spark's analysis finds inside as an error of the target, or of a part of it.

        Args:
            workspace: The names of the instance.
            what: The part, as messages name it.
            path: Where it is declared in the target; steps that are not there are left out.
        """
        locate = partial(workspace.project.located, "target", self.name, *path)
        subject = f"{self.label}: {what}" if what else self.label
        remedy = f"Correct {'it' if what else 'the target'}, or what it reads."
        return located_rejection(subject, locate, remedy)

    def check_partition(
        self, workspace: Workspace, relation: ReadableRelation, values: Mapping[str, Any], *path: str
    ) -> None:
        """Check that the values of partition columns, declared below `path`, are values that these can have.

        Raises:
            SpecError: One is not; the error has its place.
        """
        definition = workspace.project.definitions("target").get(self.name)
        check_partition_values(workspace, definition, relation, values, path)

    def labels(self, workspace: Workspace) -> frozenset[str]:
        """Return the labels that select the target: `key` and `key=value` of each."""
        labels = (self.metadata or {}).get("labels") or {}
        return frozenset(text for key, value in labels.items() for text in (key, f"{key}={value}"))

    def phases(self) -> frozenset[Phase]:
        """Return the phases in which the target has work, judged by its definition alone."""
        return self.own_phases

    def phases_in(self, workspace: Workspace) -> frozenset[Phase]:
        """Return the phases in which the target has work, given the relations that it names."""
        return self.phases()

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that must exist before the target runs in a phase."""
        return frozenset()

    def provides(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that the target writes in a phase, or removes in TRUNCATE and DESTROY."""
        return frozenset()

    def observe(self, context: Context) -> Observation:
        """Return the present state of the target's output; nothing is changed."""
        return Observation(f"target:{self.name}")

    def dirtiness(self, phase: Phase, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether the target must run in a phase, given its observation; does no I/O.

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
        return Dirtiness.yes(Reason(Code.ALWAYS_RUNS, {"phase": phase.value}))

    @property
    def is_built_always(self) -> bool:
        """Whether it is declared to be built in each run: rows that it adds may come more than once."""
        return self.build_policy is BuildPolicy.ALWAYS

    def policy(self, defaults: TargetDefaults) -> BuildPolicy:
        """Return its build policy."""
        return self.build_policy or defaults.build_policy

    def build_dirtiness(self, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether the target must run in BUILD, by its build policy or the default one."""
        if self.always_builds:
            return Dirtiness.yes(Reason(Code.KIND_ALWAYS_RUNS, {"kind": self.kind}))
        return build_dirtiness(self.policy(defaults), observation, is_partitioned=False)

    def builds_rows(self, workspace: Workspace) -> bool:
        """Return whether BUILD makes rows or files from what the target reads, and keeps them."""
        return False

    def table_by_path(self, workspace: Workspace) -> tuple[str, str] | None:
        """Return the name and the location of the Delta table that it writes, if that has no other name."""
        return None

    def append(self, workspace: Workspace, defaults: TargetDefaults) -> Append | None:
        """Return that a build adds its rows to those that are there; None if it does not."""
        return None

    def updates_rows(self, defaults: TargetDefaults) -> bool:
        """Return whether a build keeps the rows that other instances have written into the same places."""
        return False

    def has_appended(self, workspace: Workspace, append_id: str) -> bool:
        """Return whether the target's output holds the rows of an append of that identity."""
        return False

    @abstractmethod
    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Do the target's work in a phase.

        Raises:
            LakewrightError: The work failed; readers see either all of the old content or all of the new.
        """


class OutputTarget(Target):
    """A target that makes or removes something, while others wait, and checks in VERIFY that it has."""

    @abstractmethod
    def places(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return what is made or removed in a phase other than VERIFY."""

    @abstractmethod
    def work(self, context: Context, phase: Phase) -> Outcome:
        """Do the work of a phase other than VERIFY."""

    def provides(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return what is made or removed; nothing in VERIFY."""
        return frozenset() if phase is Phase.VERIFY else self.places(workspace, phase)

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Do the work of a phase under the leases on what it makes or removes, or check that in VERIFY."""
        if phase is Phase.VERIFY:
            return self.verify(context)
        resources = self.provides(context.workspace, phase)
        with hold_leases(context, resources):
            outcome = self.work(context, phase)
        context.workspace.invalidate(resources)
        return outcome

    def verify(self, context: Context) -> Outcome:
        """Check that what was made is there.

        Raises:
            VerificationError: It is not.
        """
        found = self.observe(context)
        if found.error is not None:
            raise VerificationError(f"{self.label}: {found.error}")
        if found.exists is Answer.NO:
            raise VerificationError(
                f"{self.label}: {found.subject} does not exist", remedy="Run the phase that creates it."
            )
        return self.judge(context, found)

    def judge(self, context: Context, found: Observation) -> Outcome:
        """Return the outcome of VERIFY for what is there."""
        return Outcome()
