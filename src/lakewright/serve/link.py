"""A new link to the page of a running server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from lakewright.serve.server_files import ServerFiles

__all__ = ["new_link"]

SECONDS = 5.0


def new_link(files: ServerFiles, state: Mapping[str, Any]) -> str | None:
    """Return a link that opens the page once; None if the running server has no page for this user."""
    url = state.get("http")
    try:
        token = files.token.read_text(encoding="utf-8").strip()
        request = Request(  # noqa: S310 - the address is the server's own
            f"{url}/api/v1/links", b"", {"authorization": f"Bearer {token}"}, method="POST"
        )
        with urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
            return str(json.load(answer)["url"])
    except (OSError, URLError, ValueError, KeyError):
        return None
