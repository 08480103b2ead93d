"""Jobs: their parameters, executions and metrics. Tests of a project, which build targets over mocked inputs.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles"; the project files' rules, `tests`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, model_validator

from lakewright.errors import SpecError
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import (
    Duration,
    Value,
    ValueType,
    parse_decimal,
    parse_integer,
    parse_value,
)
from lakewright.spec.models.base import (
    KindOf,
    Listed,
    Lower,
    Model,
    Named,
    NamedMap,
    Patterns,
    RefersTo,
    TextMap,
    Texts,
    Upper,
    from_text,
)

T = TypeVar("T")

StepSize = int | Decimal | Duration
"""The distance between two values of a parameter."""


class Parameter(Model):
    """A parameter of a job, or of a template."""

    name: str = Field(min_length=1, pattern=r"^[A-Za-z][A-Za-z0-9_]*$", description="Name, used as $name.")
    type: Annotated[ValueType, from_text(ValueType.parse)] = Field(
        default=ValueType.STRING, description="Type of its values."
    )
    granularity: str | None = Field(
        default=None,
        description="Values are rounded down to its multiples, such as P1D; ranges step by it.",
    )
    default: str | None = Field(default=None, description="Value if none is given.")
    description: str | None = Field(default=None, description="What it is for.")

    @model_validator(mode="after")
    def _readable(self) -> Parameter:
        if self.granularity is not None and not has_expression(self.granularity):
            self._step(self.granularity)
        if self.default is not None and not has_expression(self.default):
            self.parse(self.default)
        return self

    def parse(self, text: str) -> Value:
        """Return the value of a text in the parameter's type, not rounded to the granularity.

        Raises:
            ValueError: The text is not a value of that type.
        """
        return parse_value(self.type, text)

    def default_value(self, scope: Scope) -> Value:
        """Return the default value.

        Raises:
            SpecError: There is no default, or it is not a value of the parameter's type.
        """
        if self.default is None:
            raise SpecError.of(f"parameter {self.name!r} has no default", remedy=f"Give {self.name}=….")
        return self._evaluated("default", self.default, self.parse, scope)

    def step(self, scope: Scope) -> StepSize | None:
        """Return the granularity, or None if there is none.

        Raises:
            SpecError: The granularity does not fit the parameter's type.
        """
        if self.granularity is None:
            return None
        return self._evaluated("granularity", self.granularity, self._step, scope)

    def _evaluated(self, what: str, text: str, read: Callable[[str], T], scope: Scope) -> T:
        try:
            return read(scope.render(text))
        except ValueError as error:
            raise SpecError.of(f"{what} of parameter {self.name!r}: {error}") from None

    def parse_step(self, text: str) -> StepSize:
        """Return the step that a text means for this parameter. It may be negative.

        Raises:
            ValueError: The step does not fit the parameter's type, or is zero.
        """
        if self.type in (ValueType.DATE, ValueType.TIMESTAMP, ValueType.DURATION):
            # In Flowman's documentation, the step 1 of a date parameter means one day.
            is_days = self.type is ValueType.DATE and re.fullmatch(r"\d{1,6}", text.strip())
            duration = Duration(days=int(text)) if is_days else Duration.parse(text)
            if duration.is_zero:
                raise ValueError("a step of zero does not advance")
            if self.type is ValueType.DATE and duration.microseconds % 86_400_000_000:
                raise ValueError(f"{text!r} is not a whole number of days")
            return duration
        if self.type not in (ValueType.INTEGER, ValueType.FLOAT, ValueType.DECIMAL):
            raise ValueError(f"values of type {self.type} have no step")
        number: int | Decimal = parse_integer(text) if self.type is ValueType.INTEGER else parse_decimal(text)
        if number == 0:
            raise ValueError("a step of zero does not advance")
        return number

    def _step(self, text: str) -> StepSize:
        step = self.parse_step(text)
        size = (
            step.months * 30 + step.days + step.microseconds / 86_400_000_000
            if isinstance(step, Duration)
            else step
        )
        if size < 0:
            raise ValueError(f"{text!r} is negative")
        return step


class Execution(Model):
    """One entry of a job's `executions`: a phase, and the instances and targets for which it is active."""

    # `plan.phase` has the enumeration; `spec` lies below `plan` and may not import it.
    phase: Upper[Literal["VALIDATE", "CREATE", "BUILD", "VERIFY", "TRUNCATE", "DESTROY"]] = Field(
        description="Phase, in any case."
    )
    cycle: Lower[Literal["always", "first", "last", "never"]] = Field(
        default="always", description="Instances of a range in which the phase is active."
    )
    targets: Patterns = Field(
        default=(".*",), description="Regular expressions that match whole names of targets."
    )


class MetricSelector(Model):
    """A selection of metrics, by patterns of the name and of label values."""

    name: str | None = Field(default=None, description="Regular expression of the metric's name.")
    labels: dict[str, str] = Field(default_factory=dict, description="Regular expressions of label values.")

    def selects(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a metric of this name and with these labels is selected."""
        if self.name is not None and not re.fullmatch(self.name, name):
            return False
        patterns = self.labels.items()
        return all(key in labels and re.fullmatch(pattern, labels[key]) for key, pattern in patterns)


class Metric(Model):
    """One published metric."""

    name: str | None = Field(default=None, description="Name under which the metric is published.")
    labels: dict[str, str] = Field(
        default_factory=dict, description="Labels; $category, $kind, $name and ${phase} are the metric's."
    )
    selector: MetricSelector = Field(default_factory=MetricSelector, description="The metrics to publish.")


class MetricBoard(Model):
    """The metrics that a job publishes."""

    labels: dict[str, str] = Field(default_factory=dict, description="Labels of all metrics.")
    metrics: Listed[Metric] = Field(default=(), description="The metrics.")

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield all labels with their texts, which may be expressions."""
        for labels in (self.labels, *(each.labels for each in self.metrics)):
            yield from labels.items()


class Job(Named):
    """A job: targets that go through the phases together.

    Texts keep their expressions. `target_names` and the methods of the parameters evaluate them.
    """

    description: str | None = Field(default=None, description="What it is for.")
    extends: Annotated[Texts, RefersTo.JOB] = Field(default=(), description="Jobs that it inherits from.")
    parameters: Listed[Parameter] = Field(
        default=(), description="Parameters, whose values each run is given."
    )
    environment: TextMap = Field(default_factory=dict, description="Names for expressions.")
    targets: Annotated[Texts, RefersTo.TARGET] = Field(default=(), description="Names of its targets.")
    executions: Listed[Execution] = Field(
        default=(), description="Which phases are active in which instances."
    )
    hooks: Annotated[Listed[Annotated[Named, KindOf("hook")]], RefersTo.INSIDE] = Field(
        default=(), description="Commands and URLs that are notified of its progress."
    )
    metrics: MetricBoard | None = Field(default=None, description="Metrics that it publishes.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Labels.")
    parallelism: int | None = Field(default=None, ge=1, description="Number of targets that run in parallel.")

    @model_validator(mode="after")
    def _distinct(self) -> Job:
        names = [parameter.name for parameter in self.parameters]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"parameter {doubled[0]!r} is declared twice")
        return self

    def target_names(self, scope: Scope) -> tuple[str, ...]:
        """Return the names of the job's targets, in declared order.

        Raises:
            SpecError: An expression is invalid.
        """
        return tuple(dict.fromkeys(scope.render(target) for target in self.targets))

    def extending(self, parents: Iterable[Job]) -> Job:
        """Return the job with what it inherits. Parents' targets come first; own entries override parents'.

        An environment entry with the name of a parent's parameter replaces that parameter.
        Source: Flowman's jobs, `extends`.
        """
        parameters: dict[str, Parameter] = {}
        environment: dict[str, str] = {}
        targets: list[str] = []
        executions: tuple[Execution, ...] = ()
        hooks: tuple[Named, ...] = ()
        metrics: MetricBoard | None = None
        for job in (*parents, self):
            own_names = {parameter.name for parameter in job.parameters}
            parameters = {name: found for name, found in parameters.items() if name not in job.environment}
            environment = {name: text for name, text in environment.items() if name not in own_names}
            parameters |= {parameter.name: parameter for parameter in job.parameters}
            environment |= job.environment
            targets += job.targets
            executions += job.executions
            hooks += job.hooks
            metrics = job.metrics or metrics
        return self.model_copy(
            update={
                "parameters": tuple(parameters.values()),
                "environment": environment,
                "targets": tuple(dict.fromkeys(targets)),
                "executions": executions,
                "hooks": hooks,
                "metrics": metrics,
            }
        )


CASE_SECTIONS = {
    "fixtures": "target",
    "overrideMappings": "mapping",
    "overrideRelations": "relation",
    "assertions": "assertion",
}
"""Sections of a test, with the category of their definitions."""


class Case(Named):
    """One test of a project."""

    description: str | None = Field(default=None, description="What the test checks.")
    extends: Annotated[Texts, RefersTo.TEST] = Field(default=(), description="Tests that it inherits from.")
    environment: TextMap = Field(default_factory=dict, description="Names for expressions.")
    targets: Annotated[Texts, RefersTo.TARGET] = Field(
        default=(), description="Targets of the project that the test builds."
    )
    fixtures: NamedMap[Annotated[Named, KindOf("target")]] = Field(
        default_factory=dict, description="Additional targets that only this test builds."
    )
    override_mappings: NamedMap[Annotated[Named, KindOf("mapping")]] = Field(
        default_factory=dict, description="Mappings that replace the project's."
    )
    override_relations: NamedMap[Annotated[Named, KindOf("relation")]] = Field(
        default_factory=dict, description="Relations that replace the project's."
    )
    assertions: NamedMap[Annotated[Named, KindOf("assertion")]] = Field(
        default_factory=dict, description="What must hold after the build."
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="Labels.")

    def extending(self, parents: Iterable[Case]) -> Case:
        """Return the test with what it inherits from its parents. Its own entries override theirs."""
        whole = [*parents, self]
        return self.model_copy(
            update={
                "environment": {name: text for case in whole for name, text in case.environment.items()},
                "targets": tuple(dict.fromkeys(target for case in whole for target in case.targets)),
                **{
                    field: {name: found for case in whole for name, found in getattr(case, field).items()}
                    for field in ("fixtures", "override_mappings", "override_relations", "assertions")
                },
            }
        )
