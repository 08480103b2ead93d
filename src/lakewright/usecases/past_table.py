"""An entity's table with its log: the versions that slices made, and errors of those that are gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.commit import Commit, read_commits
from lakewright.lake.observation import read_table
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.lock import command
from lakewright.relations.entity import observe_silver
from lakewright.schema.sql import name_sql
from lakewright.slices.application import application_of
from lakewright.slices.chain import AppliedSlice, slices_in
from lakewright.slices.discover import called_name, item_id
from lakewright.slices.lost_table import has_no_commit
from lakewright.spec.models.entity import Entity
from lakewright.spec.suggestions import suggestion
from lakewright.transform.row_values import object_sql
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["PastTable"]


@dataclass(frozen=True)
class PastTable:
    """An entity's table with its log, oldest commit first."""

    app: App
    entity: Entity
    system: SystemColumns
    session: SparkSession
    log: tuple[Commit, ...]
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, app: App, name: str) -> PastTable:
        """Return the table of an entity.

        Raises:
            SpecError: There is no such entity.
            TargetError: It has no table yet.
        """
        entity = app.project.entity(name)
        address = entity.places(app.project.lake).silver
        state = observe_silver(app.lake, entity)
        system = SystemColumns(app.project.lake.systemfield_prefix, entity.destination)
        log = read_commits(app.lake, address)
        return cls(app, entity, system, app.lake.new_session(), log, state.properties)

    @property
    def app_id(self) -> str:
        """The application id of the entity's commits."""
        return str(application_of(self.app.project.name, self.entity))

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the business key, by their names in the table."""
        return tuple(column.silver for column in self.entity.columns if column.is_business_key)

    def read(self, version: int | None = None) -> DataFrame:
        """Return the rows of the last version, or of an earlier one."""
        return read_table(self.session, self.entity.places(self.app.project.lake).silver, version)

    def commit_of(self, name: str) -> tuple[Commit, AppliedSlice]:
        """Return the last commit that was made for a slice, alone or folded with others.

        An undo and a rebuild put slices into a table by one commit, which does not tell what each changed.

        Raises:
            UsageError: The log has none.
        """
        known: dict[str, tuple[Commit, AppliedSlice]] = {}
        rewound: dict[str, Commit] = {}
        for commit in self.log:
            for applied in slices_in(commit, self.app_id):
                if "rewind" in commit.content:
                    rewound[applied.name] = commit
                else:
                    known[applied.name] = (commit, applied)
        if name in known:
            return known[name]
        if name in rewound:
            raise UsageError(
                f"the log of {self.entity.name} does not tell what slice {name!r} changed: it came into the "
                f"table with others, by the undo or rebuild of version {rewound[name].version}",
                remedy=Phrase(Command("history", "row"), " shows the life of a record."),
            )
        verdict = self._verdict(name)
        if verdict is Verdict.PROCESSED:
            raise self._no_commit_error(name)
        if verdict is not Verdict.UNKNOWN:
            raise UsageError(
                f"the log of {self.entity.name} has no commit of slice {name!r}, which is {verdict}",
                remedy=Phrase(
                    "To see what it would change: ",
                    Command("process", self.entity.called, name, "--rehearse"),
                    ".",
                ),
            )
        raise UsageError(
            f"the log of {self.entity.name} has no commit of a slice {name!r}",
            remedy=suggestion(name, known) or "The log no longer reaches back so far.",
        )

    def _no_commit_error(self, name: str) -> UsageError:
        """Return the error of a processed slice without a commit: it has changed nothing, or the log ends."""
        typed = command("show", called_name(self.entity.called, name))
        if self._has_changed_nothing(name):
            return UsageError(
                f"the log of {self.entity.name} has no commit of slice {name!r}, although it was processed",
                remedy=Phrase("A slice that changes no row makes none: ", typed, " tells more."),
            )
        return UsageError(
            f"the log of {self.entity.name} does not show the commit of {name}",
            remedy=Phrase(
                "It is older than what the log keeps, or the table was written anew since. ",
                typed,
                " tells how many rows the slice changed.",
            ),
        )

    def _item(self, name: str) -> Item:
        place = f"{self.entity.places(self.app.project.lake).bronze}/{name}"
        return self.app.ledger.item(item_id(place))

    def _verdict(self, name: str) -> Verdict:
        return self._item(name).verdict(application_of(self.app.project.name, self.entity))

    def _has_changed_nothing(self, name: str) -> bool:
        application = application_of(self.app.project.name, self.entity)
        return has_no_commit(self.app.store, self._item(name), application)

    def rewound_since(self, version: int) -> int | None:
        """Return the last version after another one by which an undo or a rebuild replaced rows, or None."""
        later = (each.version for each in self.log if "rewind" in each.content and each.version > version)
        return max(later, default=None)

    def values(self, frame: DataFrame) -> str:
        """Return the source's columns of a frame as one JSON text in SQL."""
        own = (field for field in frame.schema.fields if field.name.lower() not in self.system.all)
        return object_sql((field.name, name_sql(field.name), field.dataType) for field in own)
