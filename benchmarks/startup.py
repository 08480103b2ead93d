"""Commands that need no Spark: help, validation and planning answer at once."""

from __future__ import annotations

from pathlib import Path

from benchmarks.report import Row
from benchmarks.timing import by_turns, lakewright, seconds, time_command


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the measurements of commands that need no JVM, on the demo's project below `folder`."""
    project = str(folder / "startup")
    time_command(lakewright("demo", project, "--no-run"))
    times = by_turns(
        max(rounds, 5),
        help=lambda: time_command(lakewright("--help")),
        validate=lambda: time_command(lakewright("validate", "--project", project)),
        plan=lambda: time_command(lakewright("plan", "--project", project)),
    )
    return [
        Row("`lakewright --help`", f"{seconds(times['help']):.2f} s", "< 0.5 s"),
        Row("`lakewright validate` of the demo", f"{seconds(times['validate']):.2f} s", "< 1 s"),
        Row("`lakewright plan` of the demo", f"{seconds(times['plan']):.2f} s", "< 3 s"),
    ]
