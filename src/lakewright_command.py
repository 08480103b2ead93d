"""The entry point of the `lakewright` command, apart from the package so that it runs before any import.

Ctrl-C while Python imports the package would print a traceback: until the command line runs, it ends the
process quietly.
"""

# Python's own `signal` imports more, during which a signal may come.
import _signal  # type: ignore[import-not-found]
import os
import sys

_signal.signal(_signal.SIGINT, lambda *_: (os.write(2, b"error: interrupted\n"), os._exit(130)))


def main() -> int:
    """Run the command line, in the project's server if there is one, and return the exit code."""
    from lakewright_client import Refused
    from lakewright_client import run as run_in_server

    try:
        return run_in_server(sys.argv[1:])
    except Refused as refused:
        why = str(refused)
    from lakewright.cli import main as run

    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    return run(why_cold=why)
