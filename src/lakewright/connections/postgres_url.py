"""PostgreSQL's JDBC URLs translated to SQLAlchemy URLs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

if TYPE_CHECKING:
    from sqlalchemy import URL

__all__ = ["PREFIX", "engine_url"]

PREFIX = "jdbc:postgresql:"

_SAME = {"sslmode": "sslmode", "sslrootcert": "sslrootcert", "options": "options"}
_RENAMED = {"ApplicationName": "application_name", "connectTimeout": "connect_timeout"}
_SPARKS = frozenset(
    ("url", "driver", "user", "password", "stringtype", "batchsize", "fetchsize", "isolationLevel")
) | frozenset(("numPartitions", "partitionColumn", "lowerBound", "upperBound", "reWriteBatchedInserts"))
"""Options for transferring rows, which only Spark does."""


def engine_url(options: Mapping[str, str]) -> URL | None:
    """Return the URL with which psycopg reaches a database, from the options of Spark's reader.

    Return None if the database is not PostgreSQL, psycopg is not installed, or only the JDBC driver supports
    a property; the database is then reached through the JVM.
    """
    url = options["url"]
    if not url.startswith(PREFIX) or find_spec("psycopg") is None:
        return None
    place, _, query = url.removeprefix(PREFIX).partition("?")
    properties = {**dict(parse_qsl(query, keep_blank_values=True)), **options}
    arguments = _arguments(properties)
    if arguments is None:
        return None
    return _made(place, properties, arguments)


def _arguments(properties: Mapping[str, str]) -> dict[str, str] | None:
    found: dict[str, str] = {"application_name": "lakewright", "connect_timeout": "10"}
    for name, value in properties.items():
        if name in _SAME or name in _RENAMED:
            found[{**_SAME, **_RENAMED}[name]] = value
        elif name == "ssl":
            found.setdefault("sslmode", "require" if value.lower() != "false" else "prefer")
        elif name == "currentSchema":
            found["options"] = f"{found.get('options', '')} -csearch_path={value}".strip()
        elif name not in _SPARKS:
            return None
    return found


def _made(place: str, properties: Mapping[str, str], arguments: Mapping[str, str]) -> URL:
    from sqlalchemy import URL

    server, _, database = place.removeprefix("//").rpartition("/") if "//" in place else ("", "", place)
    pairs = [each.rpartition(":") if ":" in each else (each, "", "") for each in server.split(",")]
    query = dict(arguments)
    if server:
        query["host"] = ",".join(host or "localhost" for host, _, _ in pairs)
        query["port"] = ",".join(port or "5432" for _, _, port in pairs)
    user = properties.get("user")
    return URL.create(
        "postgresql+psycopg",
        username=user,
        password=properties.get("password"),
        database=unquote(database) or user,
        query=query,
    )
