"""Connections: what relations and targets reach other systems by; one module a kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {"jdbc": "lakewright.connections.jdbc:JdbcConnection"}
"""Class of each kind, imported on first use."""

NOT_OFFERED = {
    "sftp": "Copy the files beside the runs.",
    "ssh": "Copy the files beside the runs.",
}
"""Kinds of Flowman's that aren't offered, with what to use instead."""
