"""Entities: a silver table, and the strategy that fills it from bronze slices.

Source: `processing-strategies.md`. Names and shapes are Datalake Foundation's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from lakewright.errors import SpecError
from lakewright.spec.expressions.expression import has_expression, names_in, parse_template
from lakewright.spec.expressions.scope import Entry, Scope
from lakewright.spec.models.base import Listed, Lower, Named, RefersTo, inconsistent
from lakewright.spec.models.column import Column, normal_name
from lakewright.spec.models.entity_settings import PLACE_TEMPLATES, EntityKeys, EntitySettings
from lakewright.spec.models.lake import LakeSettings, TableOutput
from lakewright.spec.models.places import Address, Places, canonical_root, place_within
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.spec.models.watermark import Watermark

FIXED_SYSTEM_NAMES = ("SourceHash", "ValidFrom", "ValidTo", "IsCurrent", "source_filename", "lastSeen")
"""System columns without the lake's prefix. `deleted` is not reserved, because a slice may contain it."""


PROJECT_FOLDER = "${project.basedir}"

SETTINGS_PREFIX = "settings_"
"""Prefix of the names by which templates refer to the entity's settings."""


TIMES = ("date", "timestamp", "timestamp_ntz")
"""The types of columns that can give a slice its time."""


class Strategy(StrEnum):
    """How a slice becomes silver rows."""

    FULL = "full"
    MERGE = "merge"
    HISTORIC = "historic"


class Entity(EntityKeys, Named):
    """A silver table, and how it is filled."""

    model_config = ConfigDict(alias_generator=None)

    id: str = Field(min_length=1, description="Stable identity, a number in Datalake Foundation.")
    name: str = Field(min_length=1, description="Name in the source, and in the bronze path.")
    connection: Annotated[str, RefersTo.CONNECTION] = Field(
        min_length=1, description="The connection of its source."
    )
    processtype: Lower[Literal["full", "merge", "historic", "delta"]] = Field(
        description="The strategy; delta means merge."
    )
    columns: Listed[Column] = Field(default=(), description="Columns with a type, a role or a new name.")
    settings: EntitySettings = Field(
        default_factory=EntitySettings, description="Settings, which override the connection's."
    )

    deferred: ClassVar[frozenset[str]] = frozenset(
        ("watermark", "settings.time", *(f"settings.{layer}" for layer in PLACE_TEMPLATES))
    )

    _scope: Scope | None = PrivateAttr(default=None)
    _declare: Callable[[], Entity | None] | None = PrivateAttr(default=None)
    _called: str = PrivateAttr(default="")
    _beside: Address | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _with_destination(cls, declared: Any) -> Any:
        if isinstance(declared, Mapping) and not declared.get("destination"):
            return {**declared, "destination": declared.get("moved_from") or declared.get("name", "")}
        return declared

    @model_validator(mode="after")
    def _consistent(self) -> Entity:
        problems = [*self._strategy_problems(), *self._name_problems(), *self._optional_problems()]
        if problems:
            raise inconsistent("; ".join(problems))
        return self

    def _strategy_problems(self) -> Iterator[str]:
        if self.strategy is not Strategy.FULL and not self.business_keys:
            yield f"the strategy {self.strategy} needs a column with the role businesskey"
        for name in self.after:
            application, colon, instance = name.partition(":")
            if not application.strip() or application == "*" or (colon and not instance.strip()):
                yield f"after: {name!r} is not the name of an application"
        infers = self.settings.delete_missing and self.strategy is not Strategy.FULL
        if infers and not self.watermark and self.settings.delete_scope != "full":
            yield "delete_missing needs a watermark, or delete_scope: full if each slice is the whole source"
        yield from self._sequence_problems()
        yield from self._time_problems()
        if self.settings.adopt is not None and self.strategy is Strategy.FULL:
            yield "adopt is for merge and historic: full replaces the rows of the table"
        elif self.settings.adopt is not None:
            yield from self.settings.adopt.problems(is_historic=self.strategy is Strategy.HISTORIC)
        if self.settings.history_from is not None:
            yield from self.settings.history_from.problems(
                is_historic=self.strategy is Strategy.HISTORIC, has_adoption=self.settings.adopt is not None
            )

    def _sequence_problems(self) -> Iterator[str]:
        column = self.settings.sequence_by
        if column is None:
            if self.settings.duplicates == "latest":
                yield "duplicates: latest needs sequence_by, which decides which row is the latest"
            return
        if not self.business_keys:
            yield "sequence_by needs a column with the role businesskey"
        excluded = {self.silver_name(name).lower() for name in self.settings.hash_exclude}
        if self.silver_name(column).lower() in excluded:
            yield f"sequence_by: {column} must not be in hash_exclude: its changes count"

    def _time_problems(self) -> Iterator[str]:
        name = self.settings.time_column
        wanted = None if name is None else self.silver_name(name).lower()
        for column in self.columns:
            if column.silver.lower() != wanted:
                continue
            if column.optional:
                yield f"the column {column.in_words} of time can't be optional: it gives a slice its time"
            if column.type is not None and (kind := column.type.ddl) not in TIMES:
                yield f"time: the column {column.in_words} is {kind}, not a date or a timestamp"

    def _name_problems(self) -> Iterator[str]:
        seen: dict[str, str] = {}
        for column in self.columns:
            if has_expression(column.result):
                continue
            key = column.silver.lower()
            if not key:
                yield f"the column name {column.result!r} has no character that a table allows"
            elif key in seen:
                both = f"{seen[key]} and {column.in_words}"
                yield f"the columns {both} become one column {column.silver!r}"
            seen.setdefault(key, column.in_words)
        doubled = [mark.column_name for mark in self.watermark]
        for name in sorted({name for name in doubled if doubled.count(name) > 1}):
            if self.settings.delete_missing:
                yield f"the watermark column {name!r} is declared twice"

    def _optional_problems(self) -> Iterator[str]:
        marks = {normal_name(mark.column_name).lower() for mark in self.watermark}
        sequence = normal_name(self.settings.sequence_by or "").lower()
        for column in self.columns:
            names = {normal_name(column.source).lower(), column.silver.lower()} if column.optional else set()
            if sequence and sequence in names:
                yield f"the column {column.in_words} of sequence_by can't be optional: it orders the rows"
            if names & marks:
                what = f"the watermark column {column.in_words}"
                yield f"{what} can't be optional: it shows how far slices were processed"
            if normal_name(f"PK_{self.destination}").lower() in names:
                yield f"the primary key {column.in_words} can't be optional"

    def reserved_name_problems(self, prefix: str) -> Iterator[tuple[int, str]]:
        """Yield the position of each column with the name of a system column, and the problem."""
        reserved = {f"{prefix}{name}".lower() for name in FIXED_SYSTEM_NAMES}
        for index, column in enumerate(self.columns):
            if column.silver.lower() in reserved or column.silver.lower() in _DELTA_NAMES:
                yield index, f"the column {column.result!r} has the name of a system column"

    @property
    def strategy(self) -> Strategy:
        """The strategy. `delta` is another name for merge."""
        return Strategy.MERGE if self.processtype == "delta" else Strategy(self.processtype)

    @property
    def watermarks(self) -> tuple[Watermark, ...]:
        """The watermarks."""
        return self.watermark

    def silver_name(self, name: str) -> str:
        """Return the name in silver of a column, given by its name in the source or its new name."""
        found = (column.silver for column in self.columns if column.source.lower() == name.lower())
        return next(found, normal_name(name))

    @property
    def names_with_values(self) -> tuple[str, ...]:
        """Names of columns that every slice must have, because settings need their values."""
        marks = (mark.column_name for mark in self.watermark)
        return (*marks, *filter(None, (self.settings.sequence_by, self.settings.time_column)))

    @property
    def reads_json(self) -> bool:
        """Whether its slices are JSON."""
        return self.settings.slice_format.kind == "json"

    @cached_property
    def business_keys(self) -> tuple[str, ...]:
        """The columns of the business key, by their names before columns are renamed."""
        return tuple(column.source for column in self.columns if column.is_business_key)

    @cached_property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns by which the silver table is partitioned, by their names in silver."""
        return tuple(column.silver for column in self.columns if column.is_partition)

    @property
    def descriptions(self) -> Mapping[str, str]:
        """Column, by its name in silver, to its description."""
        return {column.silver: column.description for column in self.columns if column.description}

    @cached_property
    def calculated(self) -> tuple[Column, ...]:
        """The columns that an expression calculates, in order."""
        return tuple(column for column in self.columns if column.is_calculated)

    @property
    def identity(self) -> str:
        """The name by which its places and records know it: the first one that it had."""
        return self.moved_from or self.name

    @property
    def called(self) -> str:
        """What commands call the entity: its name, or its id if several entities of the project share it."""
        return self._called or self.name

    def within(
        self, scope: Scope, declare: Callable[[], Entity | None] | None = None, called: str = ""
    ) -> Entity:
        """Return the entity with the names that the templates of its places may use.

        Args:
            scope: The names.
            declare: Returns the entity with its expressions as the file has them, if it can be read so.
            called: What commands call it, if that is not its name.
        """
        copy = self.model_copy()
        copy._scope = scope
        copy._declare = declare
        copy._called = called
        return copy

    def with_settings(self, **changed: Any) -> Entity:
        """Return the entity with other values of some settings, which are not validated."""
        settings = self.settings.model_copy(update=changed)
        settings.__dict__.pop("slice_format", None)  # the copy has what the original has computed
        return self.model_copy(update={"settings": settings})

    def beside(self, lake: LakeSettings, suffix: str) -> Entity:
        """Return the entity with the table beside its own, of a name with this suffix, in place of that."""
        templates = self.templates(lake)
        key = "silver_table" if "silver_table" in templates else "silver_path"
        other = {"silver_path", "silver_table"} - {key}
        changed = {key: f"{templates[key].rstrip('/')}{suffix}", **dict.fromkeys(other)}
        found = self.with_settings(**changed)
        found._beside = self.places(lake).silver
        return found

    def as_declared(self) -> Entity:
        """Return the entity with its expressions as the file has them, before they are evaluated.

        What it holds does not change with the parameters of a run, the date, or the place of the project.
        """
        return (None if self._declare is None else self._declare()) or self

    @property
    def declared_digest(self) -> str:
        """A digest of all that the file declares of it."""
        text = json.dumps(self.as_declared().model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def scope(self) -> Scope:
        """The names that its expressions may use."""
        return self._scope or Scope()

    def places(self, lake: LakeSettings) -> Places:
        """Return the places of the entity's slices and its table.

        The entity's `silver_table` or `silver_path` decides whether the table is found in the catalog or by
        path. If neither is given, the lake's `silver_output` or `output_method` decides.

        Raises:
            SpecError: A template is invalid, or a path leaves the root folder.
        """
        if not lake.root_folder:
            raise SpecError.of("the lake has no root_folder", remedy="Declare it: lake: {root_folder: …}.")
        templates = self.templates(lake)
        table, of_slices = templates.get("silver_table"), templates.get("bronze_table")
        return Places(
            slices=self._slices(templates, lake),
            silver=Address(self._place("silver", templates["silver_path"], lake), beside=self._beside)
            if table is None
            else Address(name=self._table("silver_table", table), beside=self._beside),
            raw=self._place("raw", templates["raw_path"], lake),
            quarantine=self._place("quarantine", self._quarantine_path(templates["bronze_path"]), lake),
            bronze_table=None if of_slices is None else self._table("bronze_table", of_slices),
        )

    def _slices(self, templates: Mapping[str, str], lake: LakeSettings) -> SliceFolder:
        """Return where its slices are: in bronze, or where `slices_from` says, relative to the project."""
        declared = self.settings.slices_from
        if declared is None:
            return SliceFolder(self._place("bronze", templates["bronze_path"], lake))
        what = f"slices_from of entity {self.name!r}"
        place = canonical_root(self._rendered(declared, what))
        if "://" not in place and not place.startswith("/"):
            place = f"{self._rendered(PROJECT_FOLDER, what)}/{place}"
        found = SliceFolder.of(place)
        if (problem := found.problem) is not None:
            raise SpecError.of(f"{what}: {problem}", remedy="Write it as in exports/{date}/orders.csv.")
        return found

    def _quarantine_path(self, bronze_path: str) -> str:
        """Return the template of the folder of bad rows: several entities may read one folder of slices."""
        is_own = self.destination.lower() == self.identity.lower() or "destination" in bronze_path
        return bronze_path if is_own else f"{bronze_path}__${{destination}}"

    def templates(self, lake: LakeSettings) -> dict[str, str]:
        """Return the templates of its places, by those keys of `PLACE_TEMPLATES` that apply."""
        own = self.settings
        found = {
            "raw_path": own.raw_path or lake.raw_path,
            "bronze_path": own.bronze_path or lake.bronze_path,
        }
        declared = own.output_method
        if own.silver_table or own.silver_path:
            declared = TableOutput.CATALOG if own.silver_table else TableOutput.PATHS
        if (declared or lake.silver_output or lake.output_method) is TableOutput.PATHS:
            found["silver_path"] = own.silver_path or lake.silver_path
        else:
            found["silver_table"] = own.silver_table or "silver_${connection}.${destination}"
        if own.bronze_table:
            found["bronze_table"] = own.bronze_table
        elif lake.bronze_output is TableOutput.CATALOG and not own.bronze_path:
            found["bronze_table"] = "bronze_${connection}.${entity}"
        return found

    def _place(self, layer: str, template: str, lake: LakeSettings) -> str:
        what = f"{layer}_path of entity {self.name!r}"
        # Templates of Datalake Foundation start with a slash that stands for the layer's folder.
        relative = template.removeprefix("/") if has_expression(template) else template
        path = self._rendered(relative, what)
        folder = lake.container(layer, is_secure=self.secure)
        return place_within(lake.root_folder, folder, path, what=what)

    def _table(self, key: str, template: str) -> str:
        name = self._rendered(template, f"{key} of entity {self.name!r}")
        parts = name.split(".")
        if not 1 <= len(parts) <= 3 or not all(part.strip() for part in parts):
            raise SpecError.of(
                f"{name!r} of entity {self.name!r} is not a valid table name",
                remedy="Write table, database.table or catalog.database.table.",
            )
        return name

    def _rendered(self, template: str, what: str) -> str:
        try:
            return self.scope.child(self.template_names()).render(template)
        except SpecError as error:
            fault = error.faults[0]
            raise SpecError.of(
                f"{what}: {fault.message}", location=fault.location, remedy=fault.remedy
            ) from error

    def unknown_names(self, lake: LakeSettings, scope: Scope) -> Mapping[str, frozenset[str]]:
        """Return the names in the templates of its places that are still unknown, by the template's key."""
        known = scope.names | frozenset(self.template_names())
        asked = {
            key: names_in(parse_template(template)) - known for key, template in self.templates(lake).items()
        }
        return {key: names for key, names in asked.items() if names}

    def template_names(self) -> dict[str, object]:
        """Return the names that the entity itself provides for its templates."""
        given = self.settings.model_dump(exclude_unset=True)
        return {
            "entity": self.identity,
            "destination": self.destination,
            "connection": self.connection,
            "today": Entry("${LocalDate.format($LocalDate.today(), 'yyyyMMdd')}"),
            **{
                f"{SETTINGS_PREFIX}{key}": value
                for key, value in given.items()
                if isinstance(value, (str, int, float))
            },
        }


_DELTA_NAMES = frozenset(("_change_type", "_commit_version", "_commit_timestamp"))
