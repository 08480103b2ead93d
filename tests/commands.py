"""The command line, called in this process on a Spark session that is already running."""

from __future__ import annotations

import io
import os
import shlex
import time
from contextlib import chdir
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.acceptance.command import Done, Lakewright

from lakewright.cli.call import Call, open_app
from lakewright.cli.entry import answer
from lakewright.cli.output import Output
from lakewright.spark.session import OwnSession, SharedSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["InProcess"]


@dataclass(frozen=True)
class InProcess(Lakewright):
    """The command as `Lakewright` runs it, without a process of its own.

    What a process does with its own streams isn't covered: stdout that is for JSON alone, a closed pipe, and
    signals.

    Attributes:
        session: Each command works in a new session that shares this one's JVM and catalog; None lets the
            command start Spark itself, which a command that needs none never does.
    """

    session: SparkSession | None = None

    def run(self, *arguments: str, **environ: str) -> Done:
        """Return how `lakewright ARGUMENTS` ended."""
        begin = time.monotonic()
        out, err = io.StringIO(), io.StringIO()
        surroundings = {**os.environ, **environ}
        sessions = OwnSession() if self.session is None else SharedSession(self.session)
        call = Call(
            Output(out, err, surroundings),
            surroundings,
            io.StringIO(),
            lambda settings, environ, say: open_app(settings, environ, say, sessions=sessions),
        )
        with chdir(self.folder):
            code = answer(arguments, call)
        return Done(code, out.getvalue(), err.getvalue(), time.monotonic() - begin)

    def shell(self, line: str) -> Done:
        """Return how a line ended that starts with `lakewright`."""
        command, *arguments = shlex.split(line)
        assert command == "lakewright", line
        return self.run(*arguments)
