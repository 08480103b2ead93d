"""Copies the orders of each processed slice from silver into PostgreSQL: plain Python, no Spark.

SHOP_DB names the database: postgresql://user@host/database.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
from deltalake import DeltaTable, QueryBuilder

from lakewright import Manifest

HERE = Path(__file__).parent
CREATE = "CREATE TABLE IF NOT EXISTS orders (id BIGINT PRIMARY KEY, customer TEXT, amount NUMERIC)"
UPSERT = (
    "INSERT INTO orders VALUES (%s, %s, %s) "
    "ON CONFLICT (id) DO UPDATE SET customer = excluded.customer, amount = excluded.amount"
)


def rows_of(name: str) -> list[tuple[Any, ...]]:
    """Return the rows of silver that came from a slice and that no later slice has changed."""
    silver = DeltaTable(str(HERE / "lake" / "silver" / "orders"))
    found = QueryBuilder().register("orders", silver).execute("SELECT * FROM orders")
    rows = [
        dict(zip(batch.schema.names, values, strict=True))
        for batch in found
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]
    origin = next(key for key in rows[0] if key.endswith("source_filename")) if rows else ""
    return [(row["id"], row["customer"], row["amount"]) for row in rows if row[origin].endswith(name)]


def main() -> None:
    """Load every slice that the entity has processed and the loader has not."""
    with Manifest.open(HERE) as manifest, psycopg.connect(os.environ["SHOP_DB"]) as database:
        database.execute(CREATE)

        def load(held: Any) -> Mapping[str, Any]:
            rows = rows_of(Path(held.item_id).name)
            with database.transaction():
                database.cursor().executemany(UPSERT, rows)
                held.check()  # the item is still ours, so the transaction may commit
            return {"table": "orders", "rows": len(rows)}

        # An upsert may be repeated, so the lock of a loader that was killed may be taken over.
        done = manifest.process_all("acme/loader", load, after=["lakewright/shop/orders"], is_idempotent=True)
    print(f"loaded {len(done.processed)} slices")


main()
