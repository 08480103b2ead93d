"""Why a PostgreSQL server did not let somebody in, in one line."""

from __future__ import annotations

import re

_CLIENTS_WORDS = re.compile(
    r'(?:connection failed: )?connection to server (?:at|on socket) "[^"]*"(?: \([^)]*\))?(?:, port \d+)?'
    r" failed: (?:FATAL: +)?(?P<reason>.*)"
)


def login_reason(text: str) -> str | None:
    """Return the reason in a message about a connection that failed; None if it is about something else.

    Example:
        >>> login_reason('connection failed: connection to server at "h", port 1 failed: Connection refused')
        'Connection refused'
        >>> login_reason('relation "x" does not exist')
    """
    found = _CLIENTS_WORDS.match(text.strip())
    return None if found is None else found["reason"].strip()
