"""The global options of a call, repeated in the commands that it prints, so that these can be pasted.

Whoever works on a project by `--project lake -P prod` gets every command of a message with the same options.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping

from lakewright.cli.options import Settings
from lakewright.spec.expressions.secrets import is_secret_name

__all__ = ["repeated_options"]


def repeated_options(settings: Settings, redacted: Callable[[str], str] = str) -> str:
    """Return the options that choose a project and change its definitions, as they must be typed again.

    A secret value becomes `<name>`, which no shell accepts, so that it is filled in.

    Example:
        >>> from pathlib import Path
        >>> repeated_options(Settings(Path("my lake"), ("prod",), {"day": "1", "db_password": "x"}))
        " --project 'my lake' -P prod -D day=1 -D db_password=<db_password>"
    """
    words = [] if settings.project is None else ["--project", shlex.quote(str(settings.project))]
    words += [word for name in settings.profiles for word in ("-P", shlex.quote(name))]
    words += _assigned("-D", settings.definitions, redacted)
    words += _assigned("--conf", settings.conf, redacted)
    return "".join(f" {word}" for word in words)


def _assigned(option: str, values: Mapping[str, str], redacted: Callable[[str], str]) -> Iterator[str]:
    for name, value in values.items():
        yield option
        is_secret = is_secret_name(name) or redacted(value) != value
        yield f"{shlex.quote(name)}=<{name}>" if is_secret else shlex.quote(f"{name}={value}")
