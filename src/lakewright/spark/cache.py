"""Where what is fetched or made once per machine is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for jars and launchers; it need not exist yet.

    `LAKEWRIGHT_CACHE` names it, else it is `lakewright` below `XDG_CACHE_HOME`, else below `~/.cache`.

    Example:
        >>> cache_folder({"XDG_CACHE_HOME": "/var/cache"}).as_posix()
        '/var/cache/lakewright'
    """
    if named := environ.get("LAKEWRIGHT_CACHE"):
        return Path(named).expanduser().absolute()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lakewright"
