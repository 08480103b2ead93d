"""The `jdbcCommand` target: statements that a database runs, a list of them for each phase."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.connections.connection import ConnectionReference
from lakewright.connections.dialect import Dialect
from lakewright.connections.jdbc import jdbc_connection, named_connection
from lakewright.errors import LakewrightError, TargetError
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.spec.models.base import Model, Reference, TextMap, Texts
from lakewright.targets.context import Context
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["CommandAction", "JdbcCommandTarget"]


class CommandAction(Model):
    """What is run in a phase."""

    sql: Texts = Declared(min_length=1, description="Statements, in the database's own SQL.")
    condition: str | None = Declared(
        default=None,
        description="Query whose first value must be 1 or more for them to run; no row counts as 0.",
    )
    transactional: bool = Declared(
        default=False, description="Whether they run in one transaction; else each runs in its own."
    )


@dataclass(frozen=True, slots=True)
class Held(Observation):
    """What a target's conditions said; the error of one that couldn't be asked is its reason."""

    conditions: Mapping[Phase, Dirtiness] = field(default_factory=dict)

    def after(self, phase: Phase) -> Observation:
        """Return what is expected once a phase has run: conditions may then hold or not."""
        del phase
        return replace(self, conditions=dict.fromkeys(self.conditions, _OPEN))


_OPEN = Dirtiness.unknown("its condition may be another once what comes before has run")


class JdbcCommandTarget(Target):
    """Runs statements in a database: in each phase those of its action, where its condition holds.

    What they do is theirs: nothing is known of what they make, so say by `after` and `before` when they run.
    """

    connection: ConnectionReference = Declared(description="Name of the connection, or the connection.")
    properties: TextMap = Declared(
        default_factory=dict, description="Properties for the driver, over the connection's."
    )
    validate_: CommandAction | None = Declared(
        default=None, alias="validate", description="What is run in VALIDATE."
    )
    create: CommandAction | None = Declared(default=None, description="What is run in CREATE.")
    build: CommandAction | None = Declared(default=None, description="What is run in BUILD.")
    verify: CommandAction | None = Declared(default=None, description="What is run in VERIFY.")
    truncate: CommandAction | None = Declared(default=None, description="What is run in TRUNCATE.")
    destroy: CommandAction | None = Declared(default=None, description="What is run in DESTROY.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.actions():
            raise ValueError("a jdbcCommand target has an action for one phase at least: create, build, …")
        return self

    def references(self) -> Iterable[Reference]:
        """Return the connection."""
        return named_connection(self.connection)

    def actions(self) -> dict[Phase, CommandAction]:
        """Return the action of each phase that has one."""
        found = {
            Phase.VALIDATE: self.validate_,
            Phase.CREATE: self.create,
            Phase.BUILD: self.build,
            Phase.VERIFY: self.verify,
            Phase.TRUNCATE: self.truncate,
            Phase.DESTROY: self.destroy,
        }
        return {phase: action for phase, action in found.items() if action is not None}

    def phases(self) -> frozenset[Phase]:
        """Return the phases that have an action."""
        return frozenset(self.actions())

    def _dialect(self, workspace: Workspace) -> Dialect:
        return jdbc_connection(workspace, self.connection, self.label).open(workspace.lake, self.properties)

    def observe(self, context: Context) -> Observation:
        """Return what the conditions say now."""
        digest = sha256(self.model_dump_json().encode()).hexdigest()[:12]
        answers = {
            phase: self._asked(context, action)
            for phase, action in self.actions().items()
            if action.condition is not None
        }
        return Held(f"commands:{self.name} {digest}", conditions=answers)

    def _asked(self, context: Context, action: CommandAction) -> Dirtiness:
        try:
            rows = self._dialect(context.workspace).database.query(action.condition or "", most=1)
        except LakewrightError as error:
            return Dirtiness.unknown(f"its condition can't be asked: {error.message}")
        value = rows[0][0] if rows else None
        try:
            holds = value is not None and int(value) >= 1
        except (TypeError, ValueError):
            return Dirtiness.unknown(f"its condition gives {value!r}, which is no number")
        return Dirtiness.yes("its condition holds") if holds else Dirtiness.no("its condition doesn't hold")

    def dirtiness(self, phase: Phase, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether the phase's condition holds; without one it always runs."""
        del defaults
        if observation.error is not None:
            return Dirtiness.unknown(observation.error)
        conditions = observation.conditions if isinstance(observation, Held) else {}
        return conditions.get(phase, Dirtiness.yes("has no condition"))

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Run the phase's statements, unless its condition says now that there is nothing to do.

        Raises:
            TargetError: The database refuses a statement.
        """
        action = self.actions()[phase]
        if action.condition is not None:
            answer = self._asked(context, action)
            if answer.verdict is Answer.NO:
                return Outcome(reasons=(f"nothing was run: {answer.reasons[0]}",))
        database = self._dialect(context.workspace).database
        try:
            database.run(action.sql, is_atomic=action.transactional)
        except TargetError as error:
            raise TargetError(f"{self.label}: {error.message}", remedy=error.remedy) from error
        return Outcome()
