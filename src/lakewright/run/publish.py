"""Writing a run's metrics where the configuration says so. Nothing that goes wrong here harms the run.

| configuration | what is written |
|---|---|
| `lakewright.metrics.json` | every metric of the run, with the parameters of its instance |
| `lakewright.metrics.prometheus` | the same in the text format that Prometheus' node exporter reads |

A path that is a folder, or ends with a slash, gets a file for each job; a relative one is the project's.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from lakewright.errors import SpecError
from lakewright.run.contexts import Contexts
from lakewright.run.metrics import Published, as_json, as_prometheus, measured, published, write_whole
from lakewright.run.result import RunResult
from lakewright.spec.models.job import Job
from lakewright.spec.project import Project

__all__ = ["Publisher"]

log = logging.getLogger(__name__)

_JSON, _PROMETHEUS = "lakewright.metrics.json", "lakewright.metrics.prometheus"


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes the metrics of runs of a job."""

    project: Project
    job: Job
    contexts: Contexts

    def publish(self, result: RunResult) -> tuple[Published, ...]:
        """Return the metrics of the job's board, after writing them where the configuration says so."""
        config = self.project.config
        if self.job.metrics is None and not {_JSON, _PROMETHEUS} & config.keys():
            return ()
        try:
            metrics = self._metrics(result)
        except SpecError as error:
            log.warning("the metrics of job %s: %s", self.job.name, error)
            return ()
        about = {"run_id": result.run_id, "project": result.project, "job": result.job}
        status = {"phase": result.phase.value, "status": result.status.value}
        self._write(_JSON, "json", as_json({**about, **status}, metrics))
        self._write(_PROMETHEUS, "prom", as_prometheus(metrics))
        return metrics

    def _metrics(self, result: RunResult) -> tuple[Published, ...]:
        common = {"project": self.project.name, "version": self.project.version or ""}
        found: list[Published] = []
        for index, instance in enumerate(result.instances):
            scope = self.contexts.of(index).workspace.scope
            found += published(self.job.metrics, measured(instance, common, self.job.name), scope)
            self.contexts.release(index)
        return tuple(found)

    def _write(self, key: str, ending: str, text: str) -> None:
        if not (place := self.project.config.get(key)):
            return
        path = self.project.basedir / place
        if place.endswith("/") or path.is_dir():
            path /= f"{self.project.name}-{self.job.name}.{ending}"
        try:
            write_whole(path, text)
        except OSError as error:
            log.warning("%s: %s can't be written: %s", key, path, error)
