"""The `web` hook: a URL for each of the events that Flowman names."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field as Declared

from lakewright.plan.status import Status
from lakewright.run.hooks.call import Call, HttpCall
from lakewright.run.hooks.event import RUNNING, Event
from lakewright.run.hooks.hook import Hook, Surroundings

__all__ = ["WebHook"]


class WebHook(Hook):
    """Calls URLs as phases of the job (`job…`) and targets in them (`target…`) begin and end."""

    job_start: str | None = Declared(default=None, description="Called when a phase begins.")
    job_finish: str | None = Declared(default=None, description="Called when a phase has ended, however.")
    job_success: str | None = Declared(default=None, description="Called when it succeeded.")
    job_skip: str | None = Declared(default=None, description="Called when nothing had to be done in it.")
    job_failure: str | None = Declared(default=None, description="Called when it failed.")
    target_start: str | None = Declared(default=None, description="Called when a target begins.")
    target_finish: str | None = Declared(default=None, description="Called when a target has ended, however.")
    target_success: str | None = Declared(default=None, description="Called when it succeeded.")
    target_skip: str | None = Declared(default=None, description="Called when it had nothing to do.")
    target_failure: str | None = Declared(
        default=None, description="Called when it failed, was blocked or was interrupted."
    )

    def calls(self, event: Event, surroundings: Surroundings) -> Iterator[Call]:
        """Yield a request for each key that the event is meant by."""
        if event.category not in ("job", "target"):
            return
        for moment in _moments(event.status):
            url: str | None = getattr(self, f"{event.category}_{moment}")
            if url is not None:
                yield HttpCall(surroundings.render(url))


def _moments(status: str) -> tuple[str, ...]:
    if status == RUNNING:
        return ("start",)
    ended = Status(status)
    if ended is Status.SKIPPED:
        return ("finish", "skip")
    return ("finish", "success" if ended.is_success else "failure")
