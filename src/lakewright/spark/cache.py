"""The folder for files that are fetched or created once per machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for jars and launchers; it need not exist yet.

    It is `LAKEWRIGHT_CACHE` if that is set, otherwise `lakewright` below `XDG_CACHE_HOME` or `~/.cache`.

    Example:
        >>> cache_folder({"XDG_CACHE_HOME": "/var/cache"}).as_posix()
        '/var/cache/lakewright'
    """
    if named := environ.get("LAKEWRIGHT_CACHE"):
        return Path(named).expanduser().absolute()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lakewright"
