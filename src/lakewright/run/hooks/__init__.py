"""Hooks: notify other programs of a job's progress; one module for each kind."""

from __future__ import annotations

__all__ = ["KINDS"]

KINDS = {
    "command": "lakewright.run.hooks.kinds:CommandHook",
    "jdbc": "lakewright.run.hooks.kinds:JdbcHook",
    "report": "lakewright.run.hooks.kinds:ReportHook",
    "rest": "lakewright.run.hooks.kinds:RestHook",
    "simpleReport": "lakewright.run.hooks.kinds:SimpleReportHook",
    "web": "lakewright.run.hooks.kinds:WebHook",
}
"""Class of each kind; it is imported on first use."""
