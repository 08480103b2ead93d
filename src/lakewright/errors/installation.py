"""Errors of the installation on this machine."""

from __future__ import annotations

from lakewright.errors.base import LakewrightError

__all__ = [
    "NotInstalled",
    "SparkUnavailable",
]


class NotInstalled(LakewrightError):
    """A required package or program is missing. The remedy names the command that installs it."""

    code = "not_installed"


class SparkUnavailable(LakewrightError):
    """Spark could not be started with these settings, or could not be reached. No work was started."""

    code = "spark_unavailable"
    default_remedy = "Check `config:` in the project, and run `lakewright doctor` to check this machine."
