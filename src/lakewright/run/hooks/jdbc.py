"""The `jdbc` hook: runs a statement in a database for each of Flowman's events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from pydantic import Field as Declared

from lakewright.connections.connection import Connection, ConnectionReference
from lakewright.connections.database import Database
from lakewright.connections.jdbc import named_connection
from lakewright.errors import LakewrightError
from lakewright.run.hooks.call import Call
from lakewright.run.hooks.event import Event, HookContext
from lakewright.run.hooks.web import MomentHook
from lakewright.spec.models.base import Reference

__all__ = ["JdbcHook", "StatementCall"]


@dataclass(frozen=True, slots=True)
class StatementCall:
    """A statement in a database."""

    label: str
    sql: str = field(repr=False)
    connect: Callable[[], Database] = field(repr=False)

    def make(self, seconds: float) -> None:
        """Run the statement; the database's own limits of time apply.

        Raises:
            OSError: The database can't be reached, or rejects it.
        """
        try:
            self.connect().run([self.sql])
        except LakewrightError as error:
            raise OSError(error.message) from error


class JdbcHook(MomentHook):
    """Runs SQL statements in a database when phases of the job and targets in them start and finish."""

    connection: ConnectionReference = Declared(
        description="Name of the connection, or the connection itself."
    )

    def references(self) -> Iterable[Reference]:
        """Return the connection."""
        return named_connection(self.connection)

    def texts(self) -> Iterator[str]:
        """Yield the statements, and the texts of a connection that is written here."""
        yield from super().texts()
        if isinstance(self.connection, Connection):
            yield from texts_of(self.connection)

    def calls(self, event: Event, context: HookContext) -> Iterator[Call]:
        """Yield a call for each statement that belongs to the event."""
        named = self.connection
        if isinstance(named, Connection):
            named = named.model_copy(update=rendered(named, context.render))
        for sql in self.texts_of(event):
            yield StatementCall("a statement", context.render(sql), partial(context.connect, named))


def texts_of(connection: Connection) -> Iterator[str]:
    """Yield the texts of a connection."""
    for name in type(connection).model_fields:
        value = getattr(connection, name)
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from value.values()


def rendered(connection: Connection, render: Callable[[str], str]) -> dict[str, object]:
    """Return the texts of a connection with their expressions evaluated."""
    values = {name: getattr(connection, name) for name in type(connection).model_fields}
    texts = {name: render(value) for name, value in values.items() if isinstance(value, str)}
    maps = {
        name: {key: render(text) for key, text in value.items()}
        for name, value in values.items()
        if isinstance(value, dict)
    }
    return {**texts, **maps}
