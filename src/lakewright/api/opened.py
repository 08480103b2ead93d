"""An open project as the parts of the API share it: its app, and the session that frames belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from lakewright.api.arguments import values_of
from lakewright.api.warned import warned
from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.lake.frames import frame_in
from lakewright.spark.query_logs import quiet_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Opened"]


@dataclass(slots=True, eq=False)
class Opened:
    """An open project, which is usable until it is closed.

    Attributes:
        given: The session that the caller gave, or None.
    """

    _app: App
    given: SparkSession | None = None
    _is_closed: bool = False
    _busy: Lock = field(default_factory=Lock)

    @property
    def app(self) -> App:
        """The project's app.

        Raises:
            UsageError: The project is closed.
        """
        if self._is_closed:
            raise UsageError(
                f"the project {self._app.project.name} is closed",
                remedy="Load it again: Project.load(…); a block `with` closes it at its end.",
            )
        return self._app

    def close(self) -> None:
        """Close the app's parts, and stop Spark if they started it; a second call does nothing."""
        self._is_closed = True
        self._app.close()

    @contextmanager
    def run(self) -> Iterator[str]:
        """Yield the id of a new run, which is the project's only one until the block ends.

        Raises:
            UsageError: Another thread, or a listener of a run, has the project run something.
        """
        if not self._busy.acquire(blocking=False):
            raise UsageError(
                "the project is running something already",
                remedy="Wait for it, or load the project once more: each Project runs one thing at a time.",
            )
        try:
            self.app.begin_run()
            with quiet_pyspark():
                yield self.app.run_id
        finally:
            self._busy.release()

    @property
    def session(self) -> SparkSession:
        """The caller's session: the given one, else the one that runs in this process, else one of ours."""
        if self.given is not None:
            return self.given
        from pyspark.sql import SparkSession

        own = self.app.lake.spark
        return SparkSession.getActiveSession() or own

    def values(self, values: Mapping[str, object]) -> Mapping[str, object]:
        """Return the values of names that a declaration uses, as a run of the project's jobs has them.

        Raises:
            SpecError, UsageError: A value is not of its parameter's type, or can't be that of a parameter.
        """
        project = self.app.project
        return values_of(project.jobs.values(), project.scope, values)

    def read(self, read: Callable[[App], DataFrame]) -> DataFrame:
        """Return the frame that a function reads, as one of the caller's session."""
        with quiet_pyspark(), warned():
            return frame_in(self.session, read(self.app))
