"""Following runs and commands: server-sent events, one whenever something has changed, until the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from lakewright.manifest.journal import RUNNING
from lakewright.serve.http.endpoint import ApiCall, Endpoints
from lakewright.serve.http.faults import HttpFault, body_of
from lakewright.serve.http.reads import found_run

PAUSE = 0.5
LONGEST_SILENCE = 15.0
MOST_FOLLOWERS = 50

Stream = Callable[[], tuple[Any, bool]]
"""Returns a document as it is now, and whether it is the last one."""

_followers = 0


def stream(read: Stream) -> Response:
    """Return an answer that sends a document whenever it has changed, until it is the last one.

    Raises:
        HttpFault: Too many answers of this kind are open.
    """
    if _followers >= MOST_FOLLOWERS:
        raise HttpFault(429, "too_many_followers", f"{MOST_FOLLOWERS} runs are followed", "Close some pages.")
    return StreamingResponse(_events(read), media_type="text/event-stream")


async def _events(read: Stream) -> AsyncIterator[str]:
    global _followers  # noqa: PLW0603 - the limit is of the process
    _followers += 1
    before, silence = None, 0.0
    try:
        while True:
            document, is_last = await run_in_threadpool(read)
            now = document if isinstance(document, str) else json.dumps(document, default=str)
            if now != before:
                before, silence = now, 0.0
                yield _event("change", now)
            if is_last:
                yield _event("end", "{}")
                return
            await asyncio.sleep(PAUSE)
            silence += PAUSE
            if silence >= LONGEST_SILENCE:
                silence = 0.0
                yield ": still there\n\n"
    except Exception as error:  # the reader gets a notice, and tries again
        yield _event("fault", json.dumps(body_of(error)))
    finally:
        _followers -= 1


def _event(name: str, content: str) -> str:
    lines = "\n".join(f"data: {line}" for line in content.split("\n"))
    return f"event: {name}\n{lines}\n\n"


EVENTS = Endpoints()


@EVENTS.get("/runs/{run_id}/events", "runs", media="text/event-stream")
def _run_events(call: ApiCall, run_id: str) -> Response:
    """Follows a run: an event `change` with its document whenever it changes, `end` at its end."""

    def read() -> tuple[Any, bool]:
        document = found_run(call, run_id)
        return call.app.redactor.value(document), document["status"] != RUNNING

    read()  # an unknown run is an error, not an event
    return stream(read)


@EVENTS.get("/commands/{command_id}/events", "runs", media="text/event-stream")
def _command_events(call: ApiCall, command_id: str) -> Response:
    """Follows a command: an event `change` with its log, `end` at its end."""
    command = call.site.commands.find(command_id)

    def read() -> tuple[Any, bool]:
        is_last = not command.is_running
        return call.app.redactor.value({**command.as_json(), "log": command.request.log}), is_last

    return stream(read)
