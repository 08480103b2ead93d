"""The `hiveDatabase` target: a database of the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field as Declared

from lakewright.errors import DataLossError
from lakewright.errors.phrase import Option, Phrase
from lakewright.lake.table import full_name, quoted, run_statement
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.schema.sql import text_sql
from lakewright.spec.words import first_of
from lakewright.targets.context import Context
from lakewright.targets.target import OutputTarget

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace


class HiveDatabaseTarget(OutputTarget):
    """Creates a database of the catalog, checks that it exists, and drops it.

    A database with tables is dropped only with `--allow-data-loss`.
    """

    own_phases: ClassVar[frozenset[Phase]] = frozenset({Phase.CREATE, Phase.VERIFY, Phase.DESTROY})

    database: str = Declared(description="Name of the database.")
    catalog: str | None = Declared(default=None, description="Catalog that holds it; default: Spark's.")
    location: str | None = Declared(default=None, description="Folder of its tables.")

    @property
    def qualified(self) -> str:
        """The name of the database with its catalog."""
        return full_name(self.catalog, self.database)

    def places(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the database."""
        return frozenset({Resource.table(self.qualified)})

    def observe(self, context: Context) -> Observation:
        """Return whether the database exists."""
        lake = context.workspace.lake
        subject = f"database:{self.qualified}"
        if not lake.is_started and lake.has_empty_catalog:
            return Observation(subject, exists=Answer.NO, filled=Answer.NO)
        found = Answer.of(lake.new_session().catalog.databaseExists(quoted(self.qualified)))
        return Observation(subject, exists=found, filled=found)

    def work(self, context: Context, phase: Phase) -> Outcome:
        """Create the database, or drop it.

        Raises:
            DataLossError: It holds tables, and dropping them is not permitted.
        """
        workspace, name = context.workspace, quoted(self.qualified)
        if phase is Phase.CREATE:
            run_statement(workspace.lake, " ".join(self._create(workspace, name)))
        elif self.observe(context).exists is not Answer.NO:
            self._drop(context, name)
        return Outcome()

    def _create(self, workspace: Workspace, name: str) -> list[str]:
        parts = [f"CREATE DATABASE IF NOT EXISTS {name}"]
        if self.description:
            parts.append(f"COMMENT {text_sql(self.description)}")
        if self.location is not None:
            parts.append(f"LOCATION {text_sql(workspace.resolve_location(self.location))}")
        return parts

    def _drop(self, context: Context, name: str) -> None:
        session = context.workspace.lake.new_session()
        tables = [row.tableName for row in session.sql(f"SHOW TABLES IN {name}").collect()]
        if tables and not context.options.permissions.allow_data_loss:
            listed = first_of(tables, 5)
            raise DataLossError(
                f"{self.label}: the database {self.qualified} holds {len(tables)} tables: {listed}",
                remedy=Phrase("Remove them first, or add ", Option("--allow-data-loss"), "."),
            )
        run_statement(context.workspace.lake, f"DROP DATABASE IF EXISTS {name} CASCADE")
