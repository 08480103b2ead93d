"""The command line: commands and options, output, and exit codes."""

from lakewright.cli.entry import main

__all__ = ["main"]
