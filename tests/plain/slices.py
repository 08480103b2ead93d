"""Slices, applied to their tables by the model of the strategies, in commits as the strategies make them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.model.canonical import row_hash
from tests.model.strategies import Model, Record, Refused
from tests.model.strategies import Row as ModelRow
from tests.plain.session import PlainSession
from tests.plain.tables import Action, PlainTable, Row, column, pq

from lakewright.errors import DataLossError, DuplicateBusinesskeyException, TargetError
from lakewright.lake.commit import FOLDED
from lakewright.lake.observation import observe_table
from lakewright.schema.canonical import HASH_VERSION, CanonicalForm
from lakewright.schema.types import Scalar, StructField
from lakewright.slices import reading, slice_commit
from lakewright.slices.rewind import execution
from lakewright.slices.rewind.difference import TableDifference
from lakewright.slices.rewind.side_table import SUFFIX
from lakewright.spec.models.entity import Strategy
from lakewright.spec.models.entity_settings import DELETION_VECTORS
from lakewright.strategies import schema_fit
from lakewright.strategies.delete_inference import check_delete_brake
from lakewright.strategies.preparation import BadSlice
from lakewright.strategies.slice_load import LoadRequest, SliceLoad
from lakewright.strategies.slice_statistics import SliceStatistics
from lakewright.strategies.summary import Summary
from lakewright.strategies.table_properties import declared_properties, own_properties
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from lakewright.lake.commit import Token
    from lakewright.lake.delta_log import TableState
    from lakewright.lake.lake import Lake
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.discovery import Slice
    from lakewright.spec.models.entity import Entity

NAMES = {"bigint": "long", "int": "integer"}
"""Delta's names of types that Spark calls otherwise."""

READERS: Mapping[str, Callable[[Any], Any]] = {
    "string": str,
    "long": int,
    "integer": int,
    "double": float,
    "boolean": bool,
    "date": date.fromisoformat,
}
KINDS: Mapping[type, str] = {bool: "boolean", int: "long", float: "double", str: "string"}
"""Delta's names of the types of values that a file of JSON or Parquet has."""

Found = tuple[list[Row], dict[str, str]]
"""The rows of a file, and the types of its columns."""


def _of_csv(path: Path) -> Found:
    with path.open(newline="") as file:
        found = csv.DictReader(file)
        return list(found), dict.fromkeys(found.fieldnames or (), "string")


def _of_rows(rows: list[Row]) -> Found:
    kinds: dict[str, str] = {}
    for row in rows:
        kinds |= {name: KINDS[type(value)] for name, value in row.items() if value is not None}
    return [{name: row.get(name) for name in kinds} for row in rows], kinds


READ: Mapping[str, Callable[[Path], Found]] = {
    "csv": _of_csv,
    "json": lambda path: _of_rows([json.loads(line) for line in path.read_text().splitlines()]),
    "parquet": lambda path: _of_rows(pq.read_table(path).to_pylist()),
}
"""Reads a file, by its format."""

_commit_slices = slice_commit.commit_slices
_read_slice, _fit_slice = reading.read_slice, schema_fit.fit_slice
_compare_beside = execution.compare_beside


def read_slice(lake: Lake, session: Any, slice_: Slice, entity: Entity) -> Any:
    """Return the rows of a slice that is only looked at; without Spark nothing is looked at."""
    return None if isinstance(session, PlainSession) else _read_slice(lake, session, slice_, entity)


def fit_slice(lake: Lake, session: Any, entity: Entity, frame: Any, *given: Any, **more: Any) -> Any:
    """Return how a slice fits its table; without Spark each does."""
    if not isinstance(session, PlainSession):
        return _fit_slice(lake, session, entity, frame, *given, **more)
    state = observe_table(lake, entity.places(lake.settings).silver)
    return SimpleNamespace(state=state, prepared=SimpleNamespace(frame=SimpleNamespace(columns=())))


def compare_beside(context: ProcessingContext, entity: Entity, state: TableState) -> TableDifference | None:
    """Return how a table differs from the one beside it; without Spark no rows of it."""
    if not state.exists or not isinstance(context.lake.new_session(), PlainSession):
        return _compare_beside(context, entity, state)
    settings = context.lake.settings
    side = entity.beside(settings, SUFFIX)
    system = SystemColumns(settings.systemfield_prefix, entity.destination)
    own, beside = (PlainTable(Path(str(each.places(settings).silver.location))) for each in (entity, side))
    tables = own.rows(state.version), beside.rows()
    hidden = {system.key, system.hash}
    equal, total = _alike(*tables, hidden), _alike(*tables, {*hidden, system.last_seen})
    return TableDifference(equal, len(tables[0]) - total, len(tables[1]) - total, seen=total - equal)


def _alike(before: list[Row], after: list[Row], without: set[str]) -> int:
    """Return how many rows two tables have in common."""
    rows, others = (
        Counter(repr(sorted(item for item in row.items() if item[0] not in without)) for row in each)
        for each in (before, after)
    )
    return (rows & others).total()


def commit_slices(
    lake: Lake,
    session: Any,
    entity: Entity,
    slices: Sequence[tuple[Slice, LoadRequest]],
    *,
    token: Token,
    check_lock: Callable[[], None],
    prepared: Callable[[Slice, SliceLoad], SliceLoad],
    note: Callable[[str], None] = lambda _: None,
) -> list[tuple[SliceLoad, Summary]]:
    """Apply slices as the function of this name does; without Spark in a session that stands in for it."""
    if not isinstance(session, PlainSession):
        return _commit_slices(
            lake,
            session,
            entity,
            slices,
            token=token,
            check_lock=check_lock,
            prepared=prepared,
            note=note,
        )
    table = _SilverTable(lake, entity, session, slices[0][1].strategy)
    return table.apply(slices, token, check_lock, prepared)


@dataclass
class _SilverTable:
    """The table of an entity, and the session that writes it."""

    lake: Lake
    entity: Entity
    session: PlainSession
    strategy: Strategy

    def __post_init__(self) -> None:
        address = self.entity.places(self.lake.settings).silver
        self.table = PlainTable(Path(str(address.location)))
        self.state = observe_table(self.lake, address)
        self.system = SystemColumns(self.lake.settings.systemfield_prefix, self.entity.destination)
        own = self.entity.strategy
        self.shape = Strategy.HISTORIC if Strategy.HISTORIC in {self.strategy, own} else own
        self.keys = tuple(self.entity.business_keys)
        self.columns: list[Action] = []
        self._check_known()

    def _check_known(self) -> None:
        """Raise an error if the entity declares what is not stood in for."""
        entity, settings = self.entity, self.entity.settings
        unknown = {
            "format": settings.slice_format.kind not in READ,
            "watermarks": entity.watermarks,
            "partitions": entity.partition_columns,
            "transformations": entity.transformations,
            "calculated": entity.calculated,
            "names": any(each.source != each.silver for each in entity.columns),
            "sequence_by": settings.sequence_by,
            "on_bad_rows": settings.on_bad_rows == "quarantine",
        }
        if found := [name for name, is_declared in unknown.items() if is_declared]:
            raise NotImplementedError(f"{entity.name}: {', '.join(found)}")

    def apply(
        self,
        slices: Sequence[tuple[Slice, LoadRequest]],
        token: Token,
        check_lock: Callable[[], None],
        prepared: Callable[[Slice, SliceLoad], SliceLoad],
    ) -> list[tuple[SliceLoad, Summary]]:
        """Apply slices in one commit, or in none if nothing changes."""
        model, done = self._model(), list[tuple[SliceLoad, Summary]]()
        before = list(model.rows)
        for number, (slice_, request) in enumerate(slices):
            try:
                done.append(self._applied(model, slice_, request, prepared))
            except TargetError as error:
                if len(slices) == 1:
                    raise
                raise BadSlice(number, error) from error
        last = done[-1][0]
        content: dict[str, Any] = {**token.content, "hashVersion": HASH_VERSION}
        if len(slices) == 1:
            content = {**last.content(done[0][1].checked()), **content}
        else:
            content[FOLDED] = [load.content(summary) for load, summary in done]
        if self.state.exists and model.rows == before and self.strategy is not Strategy.FULL:
            return done
        token = replace(token, content={})
        load = replace(last, request=replace(last.request, token=token, check_lock=check_lock))
        version = load.commit_content(content, lambda: self._write(model))
        return [(load, replace(summary, delta_version=version)) for load, summary in done]

    def _applied(
        self,
        model: Model,
        slice_: Slice,
        request: LoadRequest,
        prepared: Callable[[Slice, SliceLoad], SliceLoad],
    ) -> tuple[SliceLoad, Summary]:
        records = [self._record(row) for row in self._read(slice_)]
        is_first = not model.rows
        load = prepared(slice_, self._load(request, len(records)))
        expected = sum(1 for row in model.rows if row.is_current and not row.deleted)
        try:
            at: Any = request.at
            counts = model.apply(records, at, slice_.name, is_late=request.is_late)
        except Refused as refused:
            if "duplicate" in str(refused):
                raise DuplicateBusinesskeyException(str(refused)) from refused
            raise DataLossError(str(refused), details={"of_slice": True}) from refused
        check_delete_brake(load, counts.inferred_deletes, expected)
        own = {"records_in_slice", "superseded", "quarantined"}
        summary = load.summary(**{name: n for name, n in vars(counts).items() if name not in own})
        return load, replace(summary, is_first=summary.is_first and is_first)

    def _load(self, request: LoadRequest, records: int) -> SliceLoad:
        made: Any = SimpleNamespace(
            system=self.system,
            shape=self.shape,
            lacking=(),
            sequence=None,
            form=CanonicalForm(HASH_VERSION, self.lake.settings.timezone),
        )
        session: Any = self.session
        return SliceLoad(
            lake=self.lake,
            session=session,
            entity=self.entity,
            request=request,
            state=self.state,
            prepared=made,
            statistics=SliceStatistics(records=records),
        )

    def _read(self, slice_: Slice) -> list[Row]:
        """Return the rows of a slice, in the types that are declared.

        Raises:
            TargetError: A value has not the type of its column.
        """
        declared = {
            each.source: NAMES.get(each.type.ddl, each.type.ddl) for each in self.entity.columns if each.type
        }
        rows, kinds = READ[self.entity.settings.slice_format.kind](Path(slice_.path))
        kinds |= {name: kind for name, kind in declared.items() if name in kinds}
        known = [each["name"] for each in self.columns]
        if known and known != list(kinds):
            raise NotImplementedError(f"columns of the table: {known}, of the slice: {list(kinds)}")
        self.columns = [column(name, kind) for name, kind in kinds.items()]
        try:
            return [
                {n: None if row[n] is None else READERS[kind](row[n]) for n, kind in kinds.items()}
                for row in rows
            ]
        except ValueError as error:
            raise TargetError(f"a value does not fit its column: {error}") from error

    def _record(self, row: Mapping[str, Any]) -> Record:
        own = {each["name"]: row[each["name"]] for each in self.columns}
        return Record(key=tuple(own[name] for name in self.keys), values=own, stored=own)

    def _model(self) -> Model:
        """Return the model with the rows of the table."""
        settings = self.entity.settings
        scope = settings.delete_scope if settings.delete_missing else None
        model = Model(self.strategy.value, scope=scope, last_seen=settings.last_seen)
        if self.table.exists:
            reserved = {*self.system.all}
            fields = self.table.log().fields
            self.columns = [each for each in fields if each["name"].lower() not in reserved]
            model.rows = [self._model_row(row) for row in self.table.rows()]
        return model

    def _model_row(self, row: Row) -> ModelRow:
        system = self.system
        return ModelRow(
            self._record(row),
            row[system.deleted],
            row[system.last_seen],
            row[system.filename],
            row.get(system.valid_from),
            row.get(system.valid_to),
        )

    def _write(self, model: Model) -> None:
        """Write the rows of the model in place of the table's."""
        fields, rows = self._fields(), [self._row(row) for row in model.rows]
        if not self.table.exists:
            self.table.insert(self.session, rows, fields, properties=self._properties())
        else:
            operation = "WRITE" if self.strategy is Strategy.FULL else "MERGE"
            self.table.replace(self.session, rows, fields, operation)

    def _fields(self) -> list[Action]:
        system, times = self.system, list[Action]()
        if self.shape is Strategy.HISTORIC:
            start, end, current = system.temporal
            times = [column(start, "timestamp"), column(end, "timestamp"), column(current, "boolean")]
        return [
            *self.columns,
            column(system.hash, "string"),
            *times,
            column(system.filename, "string"),
            *([column(system.key, "string")] if self.keys else []),
            column(system.deleted, "boolean"),
            column(system.last_seen, "timestamp"),
        ]

    def _row(self, row: ModelRow) -> Row:
        system, own, zone = self.system, dict(row.record.values), self.lake.settings.timezone
        times: Row = {}
        if self.shape is Strategy.HISTORIC:
            start: Any = row.valid_from if row.valid_from is not None else row.seen
            times = dict(zip(system.temporal, (start, row.valid_to, row.is_current), strict=True))
        key = {system.key: row_hash({n: own[n] for n in self.keys}, HASH_VERSION, zone)} if self.keys else {}
        return {
            **own,
            system.hash: row_hash(own, HASH_VERSION, zone),
            **times,
            system.filename: row.file,
            **key,
            system.deleted: row.deleted,
            system.last_seen: row.seen,
        }

    def _properties(self) -> dict[str, str]:
        form = CanonicalForm(HASH_VERSION, self.lake.settings.timezone)
        made: Any = SimpleNamespace(
            shape=self.shape,
            form=form,
            is_key_cast=True,
            names={each["name"]: each["name"] for each in self.columns},
            key_fields=[_typed(each) for each in self.columns if each["name"] in self.keys],
        )
        return {
            DELETION_VECTORS: "true",
            **own_properties(made),
            **declared_properties(self.entity, form.zone),
            **self.entity.settings.silver_properties,
        }


def _typed(field: Action) -> StructField:
    name = {delta: spark for spark, delta in NAMES.items()}.get(field["type"])
    return StructField(field["name"], Scalar(str(name or field["type"])))
