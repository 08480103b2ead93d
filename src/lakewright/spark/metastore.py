"""The embedded metastore of Spark's catalog: a Derby database, which only one process can open at a time.

Derby's own error is buried under those of Hive and Spark, so the conflict is detected first: Derby holds a
lock of the operating system on a file of the database while it has the database open.
"""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from pathlib import Path

from lakewright.errors import LeaseHeld

CATALOG = "spark.sql.catalogImplementation"
"""Spark's key for whether tables and views outlive the session (`hive`) or not (`in-memory`)."""

_FOLDER = "metastore_db"
_LOCKED = "dbex.lck"


def embedded_metastore(conf: Mapping[str, str], state_folder: Path) -> Path | None:
    """Return the folder of a session's embedded metastore; None if it has none, or one on a server."""
    is_elsewhere = any("metastore.uris" in key or "ConnectionURL" in key for key in conf)
    is_kept = conf.get(CATALOG, "in-memory") != "in-memory"
    return state_folder / _FOLDER if is_kept and not is_elsewhere else None


def check_metastore_is_free(folder: Path) -> None:
    """Raise `LeaseHeld` if another process has a metastore open.

    Raises:
        LeaseHeld: Another process has it open.
    """
    try:
        with (folder / _LOCKED).open("rb") as file:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return
    except BlockingIOError:
        raise LeaseHeld(
            f"another process has the catalog in {folder} open, and only one process can at a time",
            remedy="Run again when that process has ended. To run several at once, keep the catalog on "
            "a server (config: spark.hadoop.hive.metastore.uris=thrift://…), or use tables by location.",
            details={"key": str(folder)},
        ) from None
