"""A small lake for tests of the strategies: entities, slices as Parquet files, and tables read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.sessions import same

from lakewright.lake.lake import Lake
from lakewright.lake.paths import local_path
from lakewright.lake.table import find_entry
from lakewright.manifest.lease import Holder, IsDead, Leases
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.record import Application, Author
from lakewright.slices.context import ProcessingContext, ProcessingOptions
from lakewright.slices.processing import process_pending
from lakewright.spark.conf import SessionSettings
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.lake import LakeSettings
from lakewright.stores.memory import MemoryStore
from lakewright.stores.process import is_dead, this_process
from lakewright.stores.registry import open_store
from lakewright.strategies.summary import Summary

# It brings no types.
pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.errors import LakewrightError
    from lakewright.manifest.item import Item
    from lakewright.manifest.store import Store
    from lakewright.slices.result import ProcessResult

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)

_MARKED = {"writing.REWRITTEN_SHARE": 2.0}
WAYS: Mapping[str, Mapping[str, Any]] = {
    "written anew": {"writing.REWRITTEN_SHARE": -1.0},
    "marked": _MARKED,
    "merged": {**_MARKED, "preparation.delta_files": lambda session, location: None},
    "sorted, compared by key first": {
        **_MARKED,
        **dict.fromkeys(("changes.LARGE_TARGET", "changes.SMALL_SLICE"), 0),
        **dict.fromkeys(("changes.FEW_CHANGES", "found_rows.SMALL_SOURCE", "writing.SMALL_SOURCE"), 0),
    },
}
"""Ways in which slices are compared and written, by what leads to them."""


def hours(count: float) -> datetime:
    """Return the instant that many hours after the tests' first."""
    return EPOCH + timedelta(hours=count)


@dataclass
class SmallLake:
    """One lake and one manifest; each processed slice takes an hour of its clock."""

    spark: SparkSession
    root: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    now: datetime = EPOCH
    warnings: list[str] = field(default_factory=list)
    store: Store = field(default_factory=MemoryStore)
    holder: Holder = field(default_factory=lambda: Holder("host", 1, "then", "run-1"))

    def __post_init__(self) -> None:
        settings = LakeSettings(root_folder=str(self.root), **self.settings)
        session = SessionSettings(self.root / "state")
        self.lake = Lake(settings, session, sessions=same(self.spark))
        self.use(self.store)

    def use(self, store: Store, is_dead: IsDead = is_dead) -> None:
        """Go on with another manifest, or with other knowledge of who has ended."""
        self.store = store
        self.ledger = Ledger(store, Author.named("tests"), ids=lambda: str(uuid4()), is_dead=is_dead)

    @classmethod
    def shared(cls, spark: SparkSession, root: Path) -> SmallLake:
        """Return a lake that several processes work at, with a manifest on disk."""
        store = open_store({"kind": "sqlite", "path": str(root / "manifest.db")})
        return cls(spark, root, store=store, holder=this_process(str(uuid4())))

    def clock(self) -> datetime:
        self.now += timedelta(hours=1)
        return self.now

    def bench(self, entity: Entity, **options: Any) -> ProcessingContext:
        return ProcessingContext(
            lake=self.lake,
            ledger=self.ledger,
            holder=self.holder,
            application=Application.named(f"lakewright/tests/{entity.name}", entity.destination),
            clock=self.clock,
            warn=self.warnings.append,
            show=self.warnings.append,
            options=ProcessingOptions(**options),
        )

    def leases(self) -> Leases:
        """Return what claims leases for one more run."""
        return Leases(self.store, self.holder, lambda: str(uuid4()), is_dead=is_dead)

    def put(self, entity: Entity, name: str, rows: Any, schema: Any = None) -> Path:
        """Write a slice; the schema is PyArrow's, guessed from the rows where none is given."""
        folder = Path(entity.places(self.lake.settings).bronze)
        folder.mkdir(parents=True, exist_ok=True)
        table = rows if isinstance(rows, pa.Table) else table_of(rows, schema)
        pq.write_table(table, folder / name)
        return folder / name

    def process(self, entity: Entity, slice_: str | None = None, **options: Any) -> ProcessResult:
        return process_pending(self.bench(entity, **options), entity, slice=slice_)

    def load(self, entity: Entity, name: str, rows: Any, schema: Any = None, **options: Any) -> Summary:
        """Write a slice, process what is pending, and return the last summary; errors are raised."""
        self.put(entity, name, rows, schema)
        result = self.process(entity, **options)
        if result.error is not None:
            raise result.error
        return result.slices[-1].summary

    def fail(
        self, entity: Entity, name: str, rows: Any, schema: Any = None, **options: Any
    ) -> LakewrightError:
        """Write a slice, process it, and return the error that it ended with."""
        self.put(entity, name, rows, schema)
        result = self.process(entity, **options)
        assert result.error is not None
        return result.error

    def put_aside(self) -> None:
        """Skip the slice that has failed, so that those after it are processed."""
        (failed,) = [item for item in self.items() if item.failed is not None]
        resolved = self.ledger.resolve(failed.item_id, "it can't be processed")
        self.ledger.skip(resolved.item_id, "it can't be processed")

    def table(self, entity: Entity) -> DataFrame:
        address = entity.places(self.lake.settings).silver
        if address.location is not None:
            return self.spark.read.format("delta").load(address.location)
        return self.spark.table(address.sql)

    def rows(self, entity: Entity, *columns: str) -> list[tuple[Any, ...]]:
        """Return the table's rows, in order, of these columns; instants as hours of the tests' clock."""
        found = self.arrow(entity)
        values = [_with_hours(found.column(name)) for name in columns or found.column_names]
        return sorted(zip(*values, strict=True), key=repr)

    def current(self, entity: Entity, *columns: str) -> list[tuple[Any, ...]]:
        """Return the same of the rows that are valid now."""
        if entity.processtype != "historic":
            return self.rows(entity, *columns)
        return [row[:-1] for row in self.rows(entity, *columns, "dlf_IsCurrent") if row[-1]]

    def arrow(self, entity: Entity) -> Any:
        """Return the table's rows, read by delta-rs if it can.

        It takes milliseconds where Spark takes most of a second, and shares no code with what wrote them.
        Instants before 1677 and after 2262 come out wrong: Spark writes them as INT96, which delta-rs counts
        in nanoseconds. It also decodes `%20` in a path, so such a table is read by Spark.
        """
        from deltalake import QueryBuilder

        if "%" in str(self.folder(entity)):
            return self.table(entity).toArrow()
        table = self.delta(entity)
        if "typeWidening" in (table.protocol().reader_features or ()):
            return self.table(entity).toArrow()
        return pa.table(QueryBuilder().register("t", table).execute("select * from t").read_all())

    def folder(self, entity: Entity) -> Path:
        """Return the folder of the entity's table."""
        silver = entity.places(self.lake.settings).silver
        if silver.location is not None:
            return Path(silver.location)
        entry = find_entry(self.lake, silver.name or "")
        folder = local_path(entry.location or "") if entry else None
        assert folder is not None
        return folder

    def delta(self, entity: Entity) -> DeltaTable:
        """Return the entity's table as something else than Spark sees it."""
        from deltalake import DeltaTable

        return DeltaTable(self.folder(entity))

    def version(self, entity: Entity) -> int:
        return self.delta(entity).version()

    def version_or_none(self, entity: Entity) -> int | None:
        return self.version(entity) if list(self.folder(entity).glob("_delta_log/*.json")) else None

    def files(self, entity: Entity) -> set[str]:
        """Return the data files under the table's folder, live or not."""
        folder = self.folder(entity)
        return {
            str(file.relative_to(folder))
            for file in folder.rglob("*.parquet")
            if "_delta_log" not in file.parts
        }

    def items(self) -> Iterator[Item]:
        from lakewright.manifest.store import Query

        return self.store.select(Query())


def _with_hours(column: Any) -> list[Any]:
    if not (pa.types.is_timestamp(column.type) and column.type.tz):
        return list(column.to_pylist())
    start = int(EPOCH.timestamp()) * 1_000_000
    micros = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
    return [None if value is None else (value - start) / 3_600_000_000 for value in micros]


def table_of(rows: Sequence[Mapping[str, Any]], schema: Any = None) -> Any:
    """Return rows as a table; `schema` is a list of names and PyArrow types."""
    if schema is not None:
        return pa.Table.from_pylist(list(rows), schema=pa.schema(schema))
    return pa.Table.from_pylist(list(rows))


@contextmanager
def in_way(name: str) -> Iterator[None]:
    """Have slices compared and written in one of `WAYS`, whatever their size."""
    with pytest.MonkeyPatch.context() as patch:
        for size, value in WAYS[name].items():
            patch.setattr(f"lakewright.strategies.{size}", value)
        yield


def entity(processtype: str = "merge", name: str = "things", **declared: Any) -> Entity:
    """Return an entity keyed by `id`, if it isn't declared otherwise."""
    defaults: dict[str, Any] = {
        "id": "1",
        "name": name,
        "connection": "crm",
        "processtype": processtype,
        "columns": [{"name": "id", "fieldroles": ["businesskey"]}],
    }
    return Entity.model_validate({**defaults, **declared})


def counts_of(summary: Summary) -> dict[str, int]:
    """Return the counts that a summary has in common with the model."""
    names = (
        "records_in_slice",
        "inserted",
        "updated",
        "deleted",
        "unchanged",
        "changed",
        "closed",
        "inferred_deletes",
        "superseded",
        "outdated",
        "quarantined",
    )
    return {name: getattr(summary, name) for name in names}
