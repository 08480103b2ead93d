"""Errors of the installation on this machine."""

from __future__ import annotations

from lakewright.errors.base import LakewrightError
from lakewright.errors.phrase import Command, Phrase

__all__ = [
    "NotInstalled",
    "ServiceEnded",
    "SparkUnavailable",
]


class NotInstalled(LakewrightError):
    """A required package or program is missing. The remedy names the command that installs it."""

    code = "not_installed"


class ServiceEnded(LakewrightError):
    """A part of the server has ended by an error of its own; the server stops. The log has the traceback."""

    code = "service_ended"


class SparkUnavailable(LakewrightError):
    """Spark could not be started with these settings, or could not be reached. No work was started."""

    code = "spark_unavailable"
    default_remedy = Phrase(
        "Check `config:` in the project, and run ", Command("doctor"), " to check this machine."
    )
