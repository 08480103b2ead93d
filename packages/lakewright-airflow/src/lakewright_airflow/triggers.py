"""Triggers that wait for a server, without a worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.sdk import BaseHook
from airflow.triggers.base import BaseTrigger, TriggerEvent

from lakewright_airflow.places import server_of_connection
from lakewright_airflow.server import Server, ServerRefused

WAITING = frozenset({"unknown", "ready", "locked"})
"""The verdicts of a slice that a run may still process."""


class _ServerTrigger(BaseTrigger):
    """Asks a server again and again; keeps the id of its connection, not its token."""

    def __init__(self, server: str, **arguments: Any) -> None:
        super().__init__()
        self.arguments = {"server": server, **arguments}

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class, and its arguments."""
        kind = type(self)
        return f"{kind.__module__}.{kind.__qualname__}", self.arguments

    async def connected(self) -> Server:
        """Return the server."""
        return server_of_connection(await BaseHook.aget_connection(self.arguments["server"]))


class CommandTrigger(_ServerTrigger):
    """Waits for the end of a command."""

    def __init__(self, server: str, command_id: str, poll_interval: float) -> None:
        super().__init__(server, command_id=command_id, poll_interval=poll_interval)
        self.path = f"/commands/{command_id}"
        self.poll_interval = poll_interval

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield the end."""
        server = await self.connected()
        # A command that the server has forgotten is an error of the task, not of the triggerer.
        while await asyncio.to_thread(self._is_running, server):
            await asyncio.sleep(self.poll_interval)
        yield TriggerEvent({"command_id": self.arguments["command_id"]})

    async def on_kill(self) -> None:
        """Interrupt the command, because somebody has ended its task."""
        server = await self.connected()
        await asyncio.to_thread(server.post, f"{self.path}/cancel")

    def _is_running(self, server: Server) -> bool:
        try:
            return server.get(self.path)["finished"] is None
        except ServerRefused:
            return False


class SliceTrigger(_ServerTrigger):
    """Waits until a slice is processed, skipped, or needs a person."""

    def __init__(self, server: str, entity: str, slice_name: str, poll_interval: float) -> None:
        super().__init__(server, entity=entity, slice_name=slice_name, poll_interval=poll_interval)
        self.of = (entity, slice_name)
        self.poll_interval = poll_interval

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield the verdict of the slice."""
        server = await self.connected()
        while (verdict := await asyncio.to_thread(server.verdict, *self.of)) in WAITING:
            await asyncio.sleep(self.poll_interval)
        yield TriggerEvent({"verdict": verdict})
