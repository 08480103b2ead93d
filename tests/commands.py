"""The command line, called in this process on a Spark session that is already running."""

from __future__ import annotations

import io
import os
import shlex
import time
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from unittest import mock

from tests.acceptance.command import Done, Lakewright
from tests.plain.session import sessions_of
from tests.sessions import no_session

from lakewright.cli.call import Call, open_app
from lakewright.cli.entry import answer
from lakewright.cli.output import Output

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Screen(io.StringIO):
    """What a command takes for a terminal."""

    def isatty(self) -> bool:
        return True


class Watched(io.StringIO):
    """Calls a function once, when a text is written."""

    def __init__(self, text: str, then: Callable[[], None]) -> None:
        super().__init__()
        self.text = text
        self.then = then
        self.is_awaited = True

    def write(self, text: str) -> int:
        written = super().write(text)
        if self.is_awaited and self.text in text:
            self.is_awaited = False
            self.then()
        return written


@dataclass(frozen=True)
class InProcess(Lakewright):
    """The command as `Lakewright` runs it, without a process of its own.

    What a process does with its own streams isn't covered: stdout that is for JSON alone, a closed pipe, and
    signals.

    Attributes:
        session: Each command works in a new session that shares this one's JVM and catalog; with None, a
            command that starts Spark fails.
        make_out: Makes what a command writes its stdout to.
        make_err: Makes what a command writes its stderr to.
    """

    session: SparkSession | None = None
    make_out: Callable[[], io.StringIO] = io.StringIO
    make_err: Callable[[], io.StringIO] = io.StringIO

    def run(self, *arguments: str, **environ: str) -> Done:
        """Return how `lakewright ARGUMENTS` ended."""
        begin = time.monotonic()
        out, err = self.make_out(), self.make_err()
        sessions = no_session if self.session is None else sessions_of(self.session)
        with chdir(self.folder), mock.patch.dict(os.environ, environ):
            surroundings = dict(os.environ)
            opener = partial(open_app, sessions=sessions)
            code = answer(
                arguments, Call(Output(out, err, surroundings), surroundings, io.StringIO(), opener)
            )
        return Done(code, out.getvalue(), err.getvalue(), time.monotonic() - begin)

    def shell(self, line: str) -> Done:
        """Return how a line ended that starts with `lakewright`."""
        command, *arguments = shlex.split(line)
        assert command == "lakewright", line
        return self.run(*arguments)
