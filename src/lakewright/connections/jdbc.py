"""The `jdbc` connection: a database with a JDBC URL. Those of PostgreSQL are translated for SQLAlchemy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from pydantic import Field as Declared

from lakewright.connections.connection import Connection
from lakewright.connections.database import Dialect
from lakewright.connections.jvm import StandardDialect
from lakewright.connections.postgres import PostgresDialect
from lakewright.errors import SpecError
from lakewright.spark.jars import POSTGRES_DRIVER
from lakewright.spark.releases import Jar
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.base import TextMap

if TYPE_CHECKING:
    from sqlalchemy import URL

    from lakewright.lake.lake import Lake
    from lakewright.spec.definitions.definition import Definition
    from lakewright.spec.project import Project
    from lakewright.workspace.workspace import Workspace


_POSTGRES_CLASS = "org.postgresql.Driver"
_REFERRING = ("relation", "target")
"""Categories whose definitions may contain an inline connection."""


class JdbcConnection(Connection):
    """A database. PostgreSQL's driver is downloaded on first use; `spark.jars` adds other drivers."""

    url: str = Declared(description="JDBC URL of the database, such as `jdbc:postgresql://host:5432/shop`.")
    driver: str | None = Declared(
        default=None, description="Class of the driver; default: according to the URL."
    )
    username: str | None = Declared(default=None, description="User name.")
    password: str | None = Declared(
        default=None, repr=False, exclude=True, description="Password; never shown."
    )
    properties: TextMap = Declared(default_factory=dict, description="Additional properties for the driver.")

    @property
    def is_postgres(self) -> bool:
        """Whether it is a PostgreSQL database."""
        return self.url.startswith(PREFIX)

    @property
    def place(self) -> str:
        """The database in messages and as a resource: its URL without properties, which may be secret."""
        return self.url.removeprefix("jdbc:").partition("?")[0].partition(";")[0]

    def options(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the options of Spark's JDBC reader and writer; `properties` override the connection's."""
        driver = self.driver or (_POSTGRES_CLASS if self.is_postgres else None)
        own = {"url": self.url, "driver": driver, "user": self.username, "password": self.password}
        found = {name: value for name, value in own.items() if value is not None}
        return {**found, **self.properties, **properties}

    def open(self, lake: Lake, properties: Mapping[str, str]) -> Dialect:
        """Return the database; it connects on first use, once per lake.

        PostgreSQL is reached without a JVM if its Python driver is installed and supports the properties.
        """
        options = self.options(properties)
        key = sha256(repr(sorted(options.items())).encode()).hexdigest()
        return lake.keep_open(("jdbc", key), lambda: self._connect(lake, options))

    def _connect(self, lake: Lake, options: Mapping[str, str]) -> Dialect:
        from lakewright.connections.jvm import JvmDatabase
        from lakewright.connections.sql import SqlDatabase

        url = engine_url(options)
        if url is not None:
            return PostgresDialect(SqlDatabase(url, self.place))
        database = JvmDatabase(lake, options, self.place)
        return PostgresDialect(database) if self.is_postgres else StandardDialect(database)


def jdbc_connection(workspace: Workspace, reference: str | Connection, label: str) -> JdbcConnection:
    """Return the connection that a definition names or contains.

    Raises:
        SpecError: There is no connection of this name, or it has another kind.
    """
    found = workspace.connection(reference) if isinstance(reference, str) else reference
    if not isinstance(found, JdbcConnection):
        raise SpecError.of(
            f"connection {found.name!r} has kind {found.kind!r}",
            remedy="Use a connection of kind jdbc.",
            subject=label,
        )
    return found


def driver_jars(project: Project) -> tuple[Jar, ...]:
    """Return the jars of known drivers that a project's connections need."""
    if any("postgresql" in project.config.get(key, "") for key in _USERS_JARS):
        return ()
    reached = [*project.imports.values(), project]
    is_needed = any(_is_postgres(raw, each.scope) for each in reached for raw in _declared(each))
    return (POSTGRES_DRIVER,) if is_needed else ()


_USERS_JARS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


def _declared(project: Project) -> Iterator[Mapping[str, object]]:
    yield from (definition.raw for definition in project.connections.values())
    for category in _REFERRING:
        definitions: Mapping[str, Definition] = project.definitions(category)
        for definition in definitions.values():
            inner = definition.raw.get("connection")
            if isinstance(inner, Mapping):
                yield inner


def _is_postgres(raw: Mapping[str, object], scope: Scope) -> bool:
    if raw.get("kind") not in ("jdbc", None):
        return False
    return any(PREFIX in text or text == _POSTGRES_CLASS for text in _texts(raw, scope))


def _texts(raw: Mapping[str, object], scope: Scope) -> Iterator[str]:
    for key in ("url", "driver"):
        text = str(raw.get(key) or "")
        try:
            yield scope.render(text)
        except SpecError:  # contains names of an instance, which is not known yet
            yield text


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
