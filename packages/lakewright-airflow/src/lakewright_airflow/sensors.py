"""A sensor that waits for a slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowFailException

from lakewright_airflow.links import OperatorPageLink
from lakewright_airflow.places import check_place, failing_tasks, server_of
from lakewright_airflow.triggers import WAITING, SliceTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context


class LakewrightSliceSensor(BaseSensorOperator):
    """Waits until a slice of an entity is processed, by whatever run; returns `processed` or `skipped`.

    Args:
        entity: The entity.
        slice_name: The name of the slice, such as `2024-05-01.csv`. No run need have discovered it yet.
        project: The folder of a project on the worker, whose manifest is asked; Spark is not started.
        server: The id of a connection to `lakewright serve`, which is asked.
        deferrable: Whether the triggerer waits for the server, instead of a worker.
        **kwargs: What every sensor takes.
    """

    template_fields: Sequence[str] = ("project", "server", "entity", "slice_name")
    operator_extra_links = (OperatorPageLink(),)

    def __init__(
        self,
        *,
        entity: str,
        slice_name: str,
        project: str | None = None,
        server: str | None = None,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_place(project, server)
        self.entity = entity
        self.slice_name = slice_name
        self.project = project
        self.server = server
        self.deferrable = deferrable
        self.page = ""

    def execute(self, context: Context) -> Any:
        """Wait for the slice; return its verdict."""
        if self.deferrable and self.server is not None and self._verdict() in WAITING:
            seconds = float(self.poke_interval)
            self.defer(
                trigger=SliceTrigger(self.server, self.entity, self.slice_name, seconds),
                method_name="execute_complete",
                timeout=timedelta(seconds=self.timeout),
            )
        return super().execute(context)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> str:
        """Return the verdict that the trigger has found."""
        return self._checked(event["verdict"])

    def poke(self, context: Context) -> PokeReturnValue:
        """Return whether the wait is over, and the verdict."""
        verdict = self._verdict()
        return PokeReturnValue(verdict not in WAITING, self._checked(verdict))

    def _verdict(self) -> str:
        with failing_tasks():
            if self.server is not None:
                server = server_of(self.server)
                self.page = f"{server.url}/item?id={self.entity}/{self.slice_name}"
                return server.verdict(self.entity, self.slice_name)
            from lakewright import Project

            with Project.load(self.project or "") as project:
                return project.entity(self.entity).verdict(self.slice_name).value

    def _checked(self, verdict: str) -> str:
        if verdict in ("failed", "invalid"):
            name = f"{self.entity}/{self.slice_name}"
            raise AirflowFailException(f"{name} is {verdict}. Do: `lakewright manifest show {name}` says why")
        return verdict
