"""The `jdbcCommand` target: runs SQL statements in a database, a list of them for each phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.connections.connection import ConnectionReference
from lakewright.connections.database import Dialect
from lakewright.connections.jdbc import jdbc_connection
from lakewright.errors import LakewrightError, TargetError
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.spec.models.base import Model, TextMap, Texts
from lakewright.spec.reason import Reason
from lakewright.targets.context import Context, TargetDefaults
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace


class CommandAction(Model):
    """The statements to run in a phase."""

    sql: Texts = Declared(min_length=1, description="Statements in the SQL of the database.")
    condition: str | None = Declared(
        default=None,
        description="Query whose first value must be at least 1 for them to run.",
    )
    transactional: bool = Declared(
        default=False,
        description="Whether to run the statements in one transaction.",
    )


@dataclass(frozen=True, slots=True)
class ConditionObservation(Observation):
    """The results of a target's conditions; a query that fails gives an unknown result with its error."""

    conditions: Mapping[Phase, Dirtiness] = field(default_factory=dict)

    def after(self, phase: Phase) -> Observation:
        """Return the state expected after a phase: every condition is unknown."""
        return replace(self, conditions=dict.fromkeys(self.conditions, _UNKNOWN_LATER))


_UNKNOWN_LATER = Dirtiness.unknown(Reason(Code.MAY_HOLD))


_KEYS = {Phase.VALIDATE: "validate_"}
"""Names of the actions that differ from those of their phases."""


class JdbcCommandTarget(Target):
    """Runs statements in a database, in each phase those of its action.

    Declare with `after` and `before` when they run.
    """

    connection: ConnectionReference = Declared(description="The connection, or its name.")
    properties: TextMap = Declared(
        default_factory=dict, description="Properties for the driver; they override those of the connection."
    )
    validate_: CommandAction | None = Declared(
        default=None, alias="validate", description="Statements to run in VALIDATE."
    )
    create: CommandAction | None = Declared(default=None, description="Statements to run in this phase.")
    build: CommandAction | None = Declared(default=None, description="Statements to run in this phase.")
    verify: CommandAction | None = Declared(default=None, description="Statements to run in this phase.")
    truncate: CommandAction | None = Declared(default=None, description="Statements to run in this phase.")
    destroy: CommandAction | None = Declared(default=None, description="Statements to run in this phase.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.actions():
            raise ValueError("a jdbcCommand target needs an action for at least one phase: create, build, …")
        return self

    def actions(self) -> dict[Phase, CommandAction]:
        """Return the action of each phase that has one."""
        declared = {phase: getattr(self, _KEYS.get(phase, phase.value.lower())) for phase in Phase}
        return {phase: action for phase, action in declared.items() if action is not None}

    def phases(self) -> frozenset[Phase]:
        """Return the phases that have an action."""
        return frozenset(self.actions())

    def _dialect(self, workspace: Workspace) -> Dialect:
        return jdbc_connection(workspace, self.connection, self.label).open(workspace.lake, self.properties)

    def observe(self, context: Context) -> Observation:
        """Return the present results of the conditions."""
        digest = sha256(self.model_dump_json().encode()).hexdigest()[:12]
        answers = {
            phase: self._evaluate(context, action)
            for phase, action in self.actions().items()
            if action.condition is not None
        }
        return ConditionObservation(f"commands:{self.name} {digest}", conditions=answers)

    def _evaluate(self, context: Context, action: CommandAction) -> Dirtiness:
        try:
            rows = self._dialect(context.workspace).database.query(action.condition or "", most=1)
        except LakewrightError as error:
            return Dirtiness.unknown(Reason(Code.NOT_EVALUATED, {"why": error.message}))
        value = rows[0][0] if rows else None
        try:
            holds = value is not None and int(value) >= 1
        except (TypeError, ValueError):
            return Dirtiness.unknown(Reason(Code.NO_NUMBER, {"value": repr(value)}))
        return Dirtiness.yes(Reason(Code.HOLDS)) if holds else Dirtiness.no(Reason(Code.HOLDS_NOT))

    def dirtiness(self, phase: Phase, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether the phase's condition holds; without a condition the target always runs."""
        if observation.error is not None:
            return Dirtiness.unobserved(observation.error)
        conditions = observation.conditions if isinstance(observation, ConditionObservation) else {}
        return conditions.get(phase, Dirtiness.yes(Reason(Code.NO_CONDITION)))

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Run the phase's statements, unless its condition no longer holds.

        Raises:
            TargetError: The database rejects a statement.
        """
        action = self.actions()[phase]
        if action.condition is not None and self._evaluate(context, action).verdict is Answer.NO:
            return Outcome(reasons=(Reason(Code.NOTHING_RUN),))
        database = self._dialect(context.workspace).database
        try:
            database.run(action.sql, is_atomic=action.transactional)
        except TargetError as error:
            raise TargetError(f"{self.label}: {error.message}", remedy=error.remedy) from error
        return Outcome()
