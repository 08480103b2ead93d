"""Connections: how relations and targets reach other systems; one module per kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {"jdbc": "lakewright.connections.jdbc:JdbcConnection"}
"""The class of each kind; imported on first use."""

NOT_OFFERED = {
    "impala": "Use a jdbc connection with Impala's driver.",
    "sftp": "Copy the files outside of Lakewright.",
    "ssh": "Copy the files outside of Lakewright.",
}
"""Flowman kinds that are not supported, and what to use instead."""
