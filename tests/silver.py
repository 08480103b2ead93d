"""Silver tables without Spark."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, QueryBuilder

from lakewright.schema.canonical import HASH_VERSION
from lakewright.strategies.table_properties import HASH_VERSION_PROPERTY, STRATEGY_PROPERTY

# has no type annotations
pa: Any = import_module("pyarrow")


def make_empty_silver(place: Path, strategy: str, schema: Any = None) -> None:
    """Create a table without rows that an entity of the strategy may write to, if there is none yet.

    Its columns are those of a schema of pyarrow, by default an integer `id`.
    """
    if DeltaTable.is_deltatable(str(place)):
        return
    place.mkdir(parents=True, exist_ok=True)
    DeltaTable.create(
        place,
        schema=schema or pa.schema([("id", pa.int64())]),
        configuration={STRATEGY_PROPERTY: strategy, HASH_VERSION_PROPERTY: HASH_VERSION},
        raise_if_key_not_exists=False,
    )


def sign_last_commit(place: Path, application: str | None = None) -> None:
    """Make the last commit of a table one of Lakewright, as a run signs it, with the number of a slice.

    Args:
        place: The table.
        application: The application whose first number it has; None for none.
    """
    log = max((place / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["userMetadata"] = json.dumps({"app": "lakewright/tests"})
    if application is not None:
        actions.append({"txn": {"appId": application, "version": 1}})
    log.write_text("\n".join(map(json.dumps, actions)))


def rows_of(table: Path, version: int | None = None) -> list[dict[str, Any]]:
    """Return the rows of a Delta table, in no order; none where it doesn't exist."""
    if not (table / "_delta_log").is_dir():
        return []
    batches = (
        QueryBuilder().register("t", DeltaTable(table, version=version)).execute("SELECT * FROM t").read_all()
    )
    names = batches.schema.names
    columns = (batches[name].to_pylist() for name in names)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
