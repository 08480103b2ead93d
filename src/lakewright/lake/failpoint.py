"""Places at which a test can make a process die, stand still or fail, to see what is left behind.

The environment variable `LAKEWRIGHT_FAILPOINT` names one: `before_commit`, `after_commit:kill`,
`after_lock:stop`, `before_processed:raise`. Without it nothing happens.
"""

from __future__ import annotations

import os
import signal

__all__ = ["FAILPOINT", "reach_failpoint"]

FAILPOINT = "LAKEWRIGHT_FAILPOINT"


def reach_failpoint(name: str) -> None:
    """Go on, unless the environment says that this process ends here, or stands still until SIGCONT.

    Raises:
        OSError: The environment asks for a failure here.
    """
    wanted, _, how = os.environ.get(FAILPOINT, "").partition(":")
    if wanted != name:
        return
    if how == "raise":
        raise OSError(f"failpoint {name}")
    if how == "stop":
        del os.environ[FAILPOINT]  # it stands still once, not at every slice
    # Sent to this thread, not to the process, whose other threads would let this one go on for a moment.
    signal.raise_signal(signal.SIGSTOP if how == "stop" else signal.SIGKILL)
