"""The command line: what is typed, what is printed, and what the process exits with."""

from lakewright.cli.entry import main

__all__ = ["main"]
