"""Hooks: notify other programs of a job's progress; one module for each kind."""

from __future__ import annotations

__all__ = ["KINDS"]

KINDS = {
    "command": "lakewright.run.hooks.command:CommandHook",
    "jdbc": "lakewright.run.hooks.jdbc:JdbcHook",
    "report": "lakewright.run.hooks.report:ReportHook",
    "rest": "lakewright.run.hooks.rest:RestHook",
    "simpleReport": "lakewright.run.hooks.report:SimpleReportHook",
    "web": "lakewright.run.hooks.web:WebHook",
}
"""Class of each kind; it is imported on first use."""
