"""The embedded metastore of Spark's catalog: a Derby database, which one process opens at a time.

Derby's own complaint is buried under those of Hive and Spark, so it is foreseen: Derby holds a lock of the
operating system on a file of the database for as long as it has it open.
"""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from pathlib import Path

from lakewright.errors import LeaseHeld

__all__ = ["CATALOG", "embedded_metastore", "refuse_metastore_in_use"]

CATALOG = "spark.sql.catalogImplementation"
"""Spark's key that says whether tables and views outlive the session, `hive`, or don't, `in-memory`."""

_FOLDER = "metastore_db"
_LOCKED = "dbex.lck"


def embedded_metastore(conf: Mapping[str, str], state_folder: Path) -> Path | None:
    """Return the folder of a session's own metastore; None where it has none, or one on a server."""
    is_elsewhere = any("metastore.uris" in key or "ConnectionURL" in key for key in conf)
    is_kept = conf.get(CATALOG, "in-memory") != "in-memory"
    return state_folder / _FOLDER if is_kept and not is_elsewhere else None


def refuse_metastore_in_use(folder: Path) -> None:
    """Return where no other process has a metastore open.

    Raises:
        LeaseHeld: One has.
    """
    try:
        with (folder / _LOCKED).open("rb") as file:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return
    except BlockingIOError:
        raise LeaseHeld(
            f"another process has the catalog in {folder} open, and only one can at a time",
            remedy="Run again once that one has ended. For several at once keep the catalog on a server: "
            "config: spark.hadoop.hive.metastore.uris=thrift://…, or use tables by location.",
            details={"key": str(folder)},
        ) from None
