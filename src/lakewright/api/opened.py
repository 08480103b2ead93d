"""An open project as the parts of the API share it: its app, and the session that frames belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.app import App
from lakewright.lake.frames import frame_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Opened"]


@dataclass(frozen=True, slots=True)
class Opened:
    """An open project.

    Attributes:
        given: The session that the caller gave, or None.
    """

    app: App
    given: SparkSession | None = None

    @property
    def session(self) -> SparkSession:
        """The caller's session: the given one, else the one that runs in this process, else one of ours."""
        if self.given is not None:
            return self.given
        from pyspark.sql import SparkSession

        own = self.app.lake.spark
        return SparkSession.getActiveSession() or own

    def frame(self, frame: DataFrame) -> DataFrame:
        """Return a frame as one of the caller's session."""
        return frame_in(self.session, frame)
