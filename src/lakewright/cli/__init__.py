"""The command line: commands and options, output, and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None, *, why_cold: str = "") -> int:
    """Run the command line and return the process's exit code.

    Args:
        argv: The arguments; by default those of the process.
        why_cold: Why it does not run in the project's server, if there is one.
    """
    try:
        # Ctrl-C while its modules are imported must not print a traceback either.
        from lakewright.cli import entry

        return entry.main(argv, why_cold=why_cold)
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        return 130
