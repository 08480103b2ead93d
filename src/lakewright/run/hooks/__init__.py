"""Hooks: notify other programs of a job's progress; one module for each kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "command": "lakewright.run.hooks.command:CommandHook",
    "rest": "lakewright.run.hooks.rest:RestHook",
    "web": "lakewright.run.hooks.web:WebHook",
}
"""Class of each kind; it is imported on first use."""

NOT_OFFERED = {
    "jdbc": "Use a command hook that runs the statement, or `lakewright history` for what ran.",
    "report": "Run the job with -o json, or see `lakewright history show`.",
    "simpleReport": "Run the job with -o json, or see `lakewright history show`.",
}
"""Kinds of Flowman that are not supported, with what to use instead."""
