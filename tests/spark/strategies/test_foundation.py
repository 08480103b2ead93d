"""A folder of Datalake Foundation's JSON files, processed as it is: every key that such files have.

`processing-strategies.md`, "Common Processing Pipeline" and the strategies' "Configuration".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.strategies.bench import pa, pq, table_of

from lakewright import Processing, Project
from lakewright.app import App
from lakewright.errors import DuplicateBusinesskeyException, UsageError
from lakewright.lake.table import drop_table
from lakewright.spark.connect import sessions_like

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

ENVIRONMENT = {
    "name": "TEST",
    "timezone": "Europe/Amsterdam",
    "raw_path": "/${connection}/${entity}",
    "bronze_path": "/${connection}/${entity}",
    "silver_path": "/${connection}/${destination}",
    "secure_container_suffix": "-secure",
    "systemfield_prefix": "sys_",
    "output_method": "paths",
}
CONNECTIONS = [
    {"name": "erp", "enabled": True, "settings": {"server": "here", "area": "eu", "last_seen": "on_change"}},
    {"name": "old", "enabled": False, "settings": {}},
]
KEY = {"name": "id", "fieldroles": ["businesskey"]}


def mark(column: str, operation: str = "and", group: int = 0) -> dict[str, Any]:
    return {
        "column_name": column,
        "operation": operation,
        "operation_group": group,
        "expression": "'${last_value}'",
    }


ENTITIES: dict[str, list[dict[str, Any]]] = {
    "tables.json": [
        {
            "id": 1,
            "name": "regions",
            "group": "geo",
            "enabled": True,
            "secure": False,
            "connection": "erp",
            "processtype": "FULL",
            "columns": [
                {"name": "country code", "newname": "Country", "fieldroles": ["partition"]},
                {"name": "label", "fieldroles": ["calculated"], "expression": "upper(name)"},
                {"newname": "size", "datatype": "integer", "expression": "length(label)"},
            ],
            "transformations": [["*", "trim(title) as name"]],
            "settings": {"silver_path": "/${settings_area}/${connection}/${destination}"},
        },
        {
            "id": 2,
            "name": "order lines",
            "destination": "orders",
            "connection": "erp",
            "processtype": "merge",
            "watermark": [mark("changed at")],
            "columns": [
                {"name": "order no", "newname": "OrderNo", "datatype": "long", "fieldroles": ["businesskey"]},
                {"name": "line", "newname": "LineNo", "datatype": "integer", "fieldroles": ["businesskey"]},
                {"name": "yr", "newname": "order year", "datatype": "integer", "fieldroles": ["partition"]},
                {"name": "changed at", "newname": "ChangedAt", "datatype": "timestamp"},
            ],
            "settings": {"delete_missing": True, "last_seen": "column", "bronze_path": "${connection}/lines"},
        },
        {
            "id": 3,
            "name": "customers",
            "connection": "erp",
            "processtype": "historic",
            "secure": True,
            "columns": [KEY],
            "transformations": [{"column": "city", "expression": "initcap(city)"}],
        },
    ],
    "catalog.json": [
        {
            "id": 4,
            "name": "stock",
            "connection": "erp",
            "processtype": "delta",
            "columns": [KEY],
            "settings": {"silver_table": "foundation_${connection}.${destination}"},
        },
        {
            "id": 5,
            "name": "prices",
            "connection": "erp",
            "processtype": "historic",
            "columns": [KEY, {"name": "net price (EUR)", "datatype": "decimal(10,2)"}],
            "settings": {"silver_table": "spark_catalog.foundation_${connection}.prices"},
        },
    ],
    "more.json": [
        {
            "id": 6,
            "name": "visits",
            "connection": "erp",
            "processtype": "merge",
            "watermark": [mark("seen"), mark("edited", "or")],
            "columns": [KEY],
            "settings": {"delete_missing": True},
        },
        {
            "id": 7,
            "name": "types",
            "connection": "erp",
            "processtype": "full",
            "columns": [
                {"name": "a", "datatype": "integer"},
                {"name": "b", "datatype": "long"},
                {"name": "c", "datatype": "float"},
                {"name": "d", "datatype": "double"},
                {"name": "e", "datatype": "boolean"},
                {"name": "f", "datatype": "date"},
                {"name": "g", "datatype": "timestamp"},
                {"name": "h", "datatype": "decimal(9,3)"},
                {"name": "i", "datatype": "binary"},
                {"name": "j", "datatype": "string"},
                {"name": "k", "datatype": "short"},
                {"name": "l", "datatype": "byte"},
            ],
        },
        {"id": 8, "name": "off", "connection": "erp", "processtype": "full", "enabled": False},
        {"id": 9, "name": "gone", "connection": "old", "processtype": "full"},
    ],
}


class Foundation:
    """The project, its lake and its rows."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        (folder / "lake.d").mkdir()
        (folder / "project.yml").write_text("name: erp\nmodules: [lake.d]\n")
        files = {"environment.json": {"environment": {**ENVIRONMENT, "root_folder": str(folder / "lake")}}}
        files["connections.json"] = {"connections": CONNECTIONS}  # type: ignore[dict-item]  # plain JSON
        files |= {name: {"entities": listed} for name, listed in ENTITIES.items()}  # type: ignore[dict-item]  # plain JSON
        for name, content in files.items():
            (folder / "lake.d" / name).write_text(json.dumps(content, indent=2))
        self.spark = spark
        self.app = App.open(folder, sessions=sessions_like(spark))
        self.project = Project(self.app)
        for name in ("stock", "prices"):
            drop_table(self.app.lake, self.project.entity(name).declared.places(self.app.project.lake).silver)

    def load(
        self, entity: str | int, name: str, rows: Sequence[Mapping[str, Any]], schema: Any = None
    ) -> Any:
        found = self.project.entity(entity)
        folder = Path(found.declared.places(self.app.project.lake).bronze)
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(table_of(rows, schema), folder / name)
        hour = len(list(folder.iterdir()))
        return Processing(found, name, {"processing.time": f"2025-07-01T0{hour}:00:00"}).process()

    def rows(self, entity: str | int, *columns: str) -> list[tuple[Any, ...]]:
        silver = self.project.entity(entity).declared.places(self.app.project.lake).silver
        found: list[Row] = self.spark.table(silver.sql).selectExpr(*columns).collect()
        return sorted(map(tuple, found), key=repr)


@pytest.fixture
def foundation(tmp_path: Path, spark: SparkSession) -> Foundation:
    return Foundation(tmp_path, spark)


@pytest.mark.nightly
def test_full_and_every_type(foundation: Foundation, tmp_path: Path) -> None:
    """Full Strategy; transformations as lists, calculated columns, partitions, path templates, casts."""
    rows = [
        {"country code": c, "title": t} for c, t in (("NL", " Zeeland "), ("NL", "Drenthe"), ("BE", "Gent"))
    ]
    assert foundation.load("regions", "2025-06-30.parquet", rows).inserted == 3
    foundation.load("regions", "2025-07-01.parquet", [{"country code": "NL", "title": "Utrecht"}])
    assert foundation.rows("regions", "Country", "name", "label", "size", "sys_source_filename") == [
        ("BE", "Gent", "GENT", 4, "2025-06-30.parquet"),
        ("NL", "Utrecht", "UTRECHT", 7, "2025-07-01.parquet"),
    ]
    assert (tmp_path / "lake/silver/eu/erp/regions/Country=BE").is_dir()

    texts = [
        "1",
        "2",
        "1.5",
        "2.25",
        "true",
        "2025-07-01",
        "2025-07-01 12:00:00",
        "1.234",
        "ab",
        "7",
        "3",
        "4",
    ]
    foundation.load(
        "types", "s", [dict(zip("abcdefghijkl", texts, strict=True)), dict.fromkeys("abcdefghijkl")]
    )
    (values, nulls) = foundation.rows("types", *"abcdef", "unix_seconds(g) as g", *"hijkl")
    noon = int(datetime(2025, 7, 1, 12, tzinfo=UTC).timestamp())
    assert values[:6] == (1, 2, 1.5, 2.25, True, date(2025, 7, 1))
    assert values[6:] == (noon, Decimal("1.234"), bytearray(b"ab"), "7", 3, 4)
    assert nulls == (None,) * 12


def test_merge_with_everything_renamed(foundation: Foundation, tmp_path: Path) -> None:
    """Merge Strategy; keys, partitions and watermarks under new names, delete inference, own lastSeen."""
    start = datetime(2025, 6, 1, tzinfo=UTC)

    def line(number: int, day: int, year: str = "2025", what: str = "x") -> dict[str, Any]:
        at = (start + timedelta(days=day)).strftime("%Y-%m-%d %H:%M:%S")
        return {"order no": str(number), "line": "1", "yr": year, "changed at": at, "what": what}

    first = foundation.load(2, "s1", [line(1, 0), line(2, 5), line(3, 5), line(4, 5, "2024")])
    second = foundation.load(2, "s2", [line(2, 6, what="y"), line(3, 6, "2026"), line(5, 7)])
    assert (first.inserted, first.is_first) == (4, True)
    assert (second.inserted, second.updated, second.changed, second.inferred_deletes) == (1, 2, 2, 1)
    assert foundation.rows(2, "OrderNo", "orderyear", "what", "sys_deleted", "hour(sys_lastSeen) as h") == [
        (1, 2025, "x", False, 23),
        (2, 2025, "y", False, 0),
        (3, 2026, "x", False, 0),
        (4, 2024, "x", True, 23),
        (5, 2025, "x", False, 0),
    ]
    assert (tmp_path / "lake/bronze/erp/lines/s2").is_file()
    with pytest.raises(DuplicateBusinesskeyException, match=r"OrderNo=6, LineNo=1"):
        foundation.load(2, "s3", [line(6, 8), line(6, 8, what="z")])


@pytest.mark.nightly
def test_merge_with_watermarks_joined_by_or(foundation: Foundation) -> None:
    """Merge Strategy, Configuration: the watermark's `operation`."""
    schema = [("id", pa.int64()), ("seen", pa.int64()), ("edited", pa.int64())]

    def row(number: int, seen: int, edited: int | None) -> dict[str, Any]:
        return {"id": number, "seen": seen, "edited": edited}

    foundation.load("visits", "s1", [row(1, 10, 10), row(2, 10, 1), row(3, 1, 10), row(4, 1, None)], schema)
    summary = foundation.load("visits", "s2", [row(1, 11, 11)], schema)
    assert summary.inferred_deletes == 2
    assert [found[0] for found in foundation.rows("visits", "id", "sys_deleted") if found[1]] == [2, 3]


@pytest.mark.nightly
def test_historic_and_secure(foundation: Foundation, tmp_path: Path) -> None:
    """Historic Strategy; secure containers, single transformations."""
    foundation.load("customers", "s1", [{"id": 1, "city": "ROME"}, {"id": 2, "city": "oslo"}])
    summary = foundation.load("customers", "s2", [{"id": 1, "city": "paris"}, {"id": 2, "city": "OSLO"}])
    assert (summary.inserted, summary.updated, summary.unchanged) == (0, 1, 1)
    versions = foundation.rows("customers", "id", "city", "sys_IsCurrent", "sys_ValidTo is null as open")
    assert versions == [(1, "Paris", True, True), (1, "Rome", False, False), (2, "Oslo", True, True)]
    assert (tmp_path / "lake/bronze-secure/erp/customers/s1").is_file()
    assert (tmp_path / "lake/silver-secure/erp/customers/_delta_log").is_dir()


@pytest.mark.nightly  # test_table fills tables of the catalog
def test_catalog_tables_of_two_and_three_parts(foundation: Foundation) -> None:
    foundation.load("stock", "s1", [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    assert foundation.load("stock", "s2", [{"id": 1, "n": 1}, {"id": 2, "n": 3}]).changed == 1
    assert foundation.rows("stock", "id", "n", "hour(sys_lastSeen) as h") == [(1, 1, 23), (2, 3, 0)]
    assert str(foundation.project.entity("stock").declared.places(foundation.app.project.lake).silver) == (
        "foundation_erp.stock"
    )
    foundation.load("prices", "s1", [{"id": 1, "net price (EUR)": "1.5"}])
    foundation.load("prices", "s2", [{"id": 1, "net price (EUR)": "1.75"}])
    assert foundation.rows("prices", "netpriceEUR", "sys_IsCurrent") == [
        (Decimal("1.50"), False),
        (Decimal("1.75"), True),
    ]


def test_what_is_disabled_is_not_processed(foundation: Foundation) -> None:
    """Entity and connection with `enabled: false`."""
    for name in ("off", "gone"):
        with pytest.raises(UsageError, match=f"the entity '{name}' is disabled"):
            foundation.load(name, "s1", [{"id": 1}])
