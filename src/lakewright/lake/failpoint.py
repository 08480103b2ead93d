"""Points in the code at which a test can kill, stop or fail the process, to see what is left behind.

The environment variable `LAKEWRIGHT_FAILPOINT` names one: `before_commit`, `after_commit:kill`,
`after_lock:stop`, `before_processed:raise`. Without the variable nothing happens.
"""

from __future__ import annotations

import os
import signal

FAILPOINT = "LAKEWRIGHT_FAILPOINT"


def reach_failpoint(name: str) -> None:
    """Kill, stop or fail this process if the environment names this point; a stopped one waits for SIGCONT.

    Raises:
        OSError: The environment asks for a failure here.
    """
    wanted, _, how = os.environ.get(FAILPOINT, "").partition(":")
    if wanted != name:
        return
    if how == "raise":
        raise OSError(f"failpoint {name}")
    if how == "stop":
        del os.environ[FAILPOINT]  # it stops once, not at every slice
    # Sent to this thread: a signal to the process may reach another thread, and this one would continue.
    signal.raise_signal(signal.SIGSTOP if how == "stop" else signal.SIGKILL)
