"""The kinds of hooks: requests, processes, statements in a database, and files that record what a run did."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator
from pydantic import Field as Declared

from lakewright.connections.connection import Connection, ConnectionReference
from lakewright.connections.database import Database
from lakewright.errors import LakewrightError
from lakewright.manifest.plain_values import is_number
from lakewright.plan.status import Status
from lakewright.run.hooks.call import Call, HttpCall, ProcessCall
from lakewright.run.hooks.event import RUNNING, Conditions, Event, Hook, HookContext, matches
from lakewright.spec.models.base import from_text, upper
from lakewright.spec.models.job import MetricBoard
from lakewright.spec.reason import reasons_text


class MomentHook(Hook):
    """A hook with a text for each moment at which a phase (`job…`) or a target (`target…`) starts or ends."""

    job_start: str | None = Declared(default=None, description="URL or statement for its start.")
    job_finish: str | None = Declared(default=None, description="URL or statement for its end.")
    job_success: str | None = Declared(default=None, description="URL or statement for a success.")
    job_skip: str | None = Declared(default=None, description="URL or statement if it had nothing to do.")
    job_failure: str | None = Declared(default=None, description="URL or statement for a failure.")
    target_start: str | None = Declared(default=None, description="URL or statement for its start.")
    target_finish: str | None = Declared(default=None, description="URL or statement for its end.")
    target_success: str | None = Declared(default=None, description="URL or statement for a success.")
    target_skip: str | None = Declared(default=None, description="URL or statement if it had nothing to do.")
    target_failure: str | None = Declared(default=None, description="URL or statement for a failure.")

    def texts(self) -> Iterator[str]:
        """Yield the declared texts."""
        for category in ("job", "target"):
            yield from self._declared(category, ("start", "finish", "success", "skip", "failure"))

    def texts_of(self, event: Event) -> Iterator[str]:
        """Yield the texts that belong to an event."""
        if event.category in ("job", "target"):
            yield from self._declared(event.category, _moments(event.status))

    def _declared(self, category: str, moments: Sequence[str]) -> Iterator[str]:
        texts: list[str | None] = [getattr(self, f"{category}_{moment}") for moment in moments]
        return (text for text in texts if text is not None)


class WebHook(MomentHook):
    """Calls URLs when phases of the job (`job…`) and targets in them (`target…`) start and finish."""

    def calls(self, event: Event, context: HookContext) -> Iterator[Call]:
        """Yield a request for each declared URL that belongs to the event."""
        for url in self.texts_of(event):
            yield HttpCall(context.render(url))


def _moments(status: str) -> tuple[str, ...]:
    if status == RUNNING:
        return ("start",)
    ended = Status(status)
    if ended is Status.SKIPPED:
        return ("finish", "skip")
    return ("finish", "success" if ended.is_success else "failure")


_Method = Annotated[Literal["GET", "POST", "PUT"], BeforeValidator(upper)]


_When = Annotated[
    Conditions,
    Declared(
        default_factory=dict,
        description="Regular expressions for variables of the event; default: all events.",
    ),
]


class RestHook(Hook):
    """Sends an HTTP request."""

    url: str = Declared(min_length=1, description="URL to call, with expressions over the event's variables.")
    when: _When
    method: _Method = Declared(default="GET", description="POST and PUT send a body.")
    headers: dict[str, str] = Declared(default_factory=dict, description="Headers of the request.")
    body: str | None = Declared(default=None, description="Body of POST and PUT; default: the event as JSON.")

    def texts(self) -> Iterator[str]:
        """Yield the URL, the values of the headers, and the body."""
        yield from (self.url, *self.headers.values())
        if self.body is not None and self.method != "GET":
            yield self.body

    def calls(self, event: Event, context: HookContext) -> Iterator[Call]:
        """Yield a request if the event meets the conditions."""
        if not matches(event, self.when):
            return
        render = context.render
        body = None
        if self.method != "GET":
            body = event.text() if self.body is None else render(self.body)
        headers = {name: render(value) for name, value in self.headers.items()}
        yield HttpCall(render(self.url), self.method, headers, body)


def _words(declared: object) -> object:
    if not isinstance(declared, str):
        return declared
    try:
        return tuple(shlex.split(declared))
    except ValueError as error:
        raise ValueError(f"{declared!r} cannot be parsed as a command: {error}") from None


class CommandHook(Hook):
    """Runs a command, without a shell, in the project's folder.

    The event is in variables `LAKEWRIGHT_CATEGORY`, `LAKEWRIGHT_STATUS` and so on, and as JSON on its
    standard input.
    """

    command: Annotated[tuple[str, ...], BeforeValidator(_words)] = Declared(
        min_length=1, description="Program and arguments, as a list or a line with shell quoting."
    )
    when: _When

    def texts(self) -> Iterator[str]:
        """Yield the program and its arguments."""
        yield from self.command

    def calls(self, event: Event, context: HookContext) -> Iterator[Call]:
        """Yield a process if the event meets the conditions."""
        if not matches(event, self.when):
            return
        own = {f"LAKEWRIGHT_{name.upper()}": value for name, value in event.variables().items()}
        own["LAKEWRIGHT_PARAMETERS"] = json.dumps(dict(event.parameters))
        own["LAKEWRIGHT_MESSAGE"] = event.error.message if event.error else ""
        arguments = tuple(context.render(word) for word in self.command)
        yield ProcessCall(arguments, {**context.environ, **own}, context.folder, event.text())


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

    connection: ConnectionReference = Declared(description="The connection, or its name.")

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
    found: dict[str, object] = {}
    for name in type(connection).model_fields:
        value = getattr(connection, name)
        if isinstance(value, str):
            found[name] = render(value)
        elif isinstance(value, dict):
            found[name] = {key: render(text) for key, text in value.items()}
    return found


@dataclass(frozen=True, slots=True)
class FileCall:
    """Text for a file."""

    path: Path
    text: str = field(repr=False)
    is_new: bool = False

    @property
    def label(self) -> str:
        """The path of the file."""
        return str(self.path)

    def make(self, seconds: float) -> None:
        """Add the text to the file, or begin the file with it.

        Raises:
            OSError: The file can't be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("w" if self.is_new else "a", encoding="utf-8") as file:
            file.write(self.text)


class SimpleReportHook(Hook):
    """Writes a text file with a line for each target and phase that has finished."""

    location: str = Declared(min_length=1, description="Path of the file.")
    mode: Annotated[Literal["overwrite", "append"], from_text(str.lower)] = Declared(
        default="overwrite", description="Whether a run replaces the file or adds to it."
    )

    def texts(self) -> Iterator[str]:
        """Yield the path."""
        yield self.location

    def calls(self, event: Event, context: HookContext) -> Iterator[Call]:
        """Yield the text of an event: a heading for the run, a line for whatever has finished."""
        path = context.folder / context.render(self.location)
        if event.category == "run" and event.status == RUNNING:
            heading = f"{event.project} {event.job} {event.run_id} {event.at:%Y-%m-%d %H:%M:%S}\n"
            yield FileCall(path, heading, is_new=self.mode == "overwrite")
        elif event.status != RUNNING and event.category in ("target", "job", "run"):
            yield FileCall(path, self.line(event, context) + "\n")

    def line(self, event: Event, context: HookContext) -> str:
        """Return the line for something that has finished."""
        return _line(event, {name: value for name, value in event.metrics.items() if is_number(value)})


class ReportHook(SimpleReportHook):
    """Writes the same file as `simpleReport`, with the metrics that a board selects."""

    metrics: MetricBoard | None = Declared(
        default=None, description="The metrics to show; default: those of the targets."
    )

    def texts(self) -> Iterator[str]:
        """Yield the path, and the labels of the metrics."""
        yield from super().texts()
        if self.metrics is not None:
            yield from (text for _, text in self.metrics.texts())

    def line(self, event: Event, context: HookContext) -> str:
        """Return the line with the chosen metrics and their labels."""
        if self.metrics is None:
            return super().line(event, context)
        shown: dict[str, object] = {}
        found = {name: value for name, value in event.metrics.items() if is_number(value)}
        if event.seconds is not None and event.category in ("job", "target"):
            found[f"{event.category}_runtime"] = round(event.seconds * 1000)
        for chosen in self.metrics.metrics:
            for name, value in found.items():
                if chosen.selector.selects(name, event.variables()):
                    labels = {**self.metrics.labels, **chosen.labels}
                    inside = ",".join(f"{key}={context.render(text)}" for key, text in labels.items())
                    shown[f"{chosen.name or name}{{{inside}}}" if inside else chosen.name or name] = value
        return _line(event, shown)


def _line(event: Event, metrics: Mapping[str, object]) -> str:
    what = f"target {event.name}" if event.category == "target" else event.category
    parts = [f"{event.at:%Y-%m-%d %H:%M:%S}", event.status, event.phase, what]
    if event.seconds is not None:
        parts.append(f"{event.seconds:.1f} s")
    parts += [f"{name}={value}" for name, value in metrics.items()]
    if event.error is not None:
        parts.append(event.error.message)
    elif event.reasons:
        parts.append(reasons_text(event.reasons))
    return " ".join(part for part in parts if part)
