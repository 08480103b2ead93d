"""The `web` hook: calls a URL for each of Flowman's events."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field as Declared

from lakewright.plan.status import Status
from lakewright.run.hooks.call import Call, HttpCall
from lakewright.run.hooks.event import RUNNING, Event, Hook, HookContext

__all__ = ["MomentHook", "WebHook"]


class MomentHook(Hook):
    """A hook with a text for each moment at which a phase (`job…`) or a target (`target…`) starts or ends."""

    job_start: str | None = Declared(default=None, description="Called when a phase starts.")
    job_finish: str | None = Declared(default=None, description="Called when a phase has finished.")
    job_success: str | None = Declared(default=None, description="Called when a phase succeeded.")
    job_skip: str | None = Declared(default=None, description="Called when a phase had nothing to do.")
    job_failure: str | None = Declared(default=None, description="Called when a phase failed.")
    target_start: str | None = Declared(default=None, description="Called when a target starts.")
    target_finish: str | None = Declared(default=None, description="Called when a target has finished.")
    target_success: str | None = Declared(default=None, description="Called when a target succeeded.")
    target_skip: str | None = Declared(default=None, description="Called when a target had nothing to do.")
    target_failure: str | None = Declared(
        default=None, description="Called when a target failed, was blocked or was aborted."
    )

    def texts(self) -> Iterator[str]:
        """Yield the declared texts."""
        for category in ("job", "target"):
            for moment in ("start", "finish", "success", "skip", "failure"):
                text: str | None = getattr(self, f"{category}_{moment}")
                if text is not None:
                    yield text

    def texts_of(self, event: Event) -> Iterator[str]:
        """Yield the texts that belong to an event."""
        if event.category not in ("job", "target"):
            return
        for moment in _moments(event.status):
            text: str | None = getattr(self, f"{event.category}_{moment}")
            if text is not None:
                yield text


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
