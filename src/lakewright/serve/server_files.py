"""The files of a project's server, in `.lakewright` of the project's folder; only its user can read them."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase

__all__ = ["ServerFiles"]


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """The places of a server's files.

    Attributes:
        folder: `.lakewright` of the project's folder.
    """

    folder: Path

    @classmethod
    def of(cls, basedir: Path) -> ServerFiles:
        """Return the files of the server of the project in a folder."""
        return cls(basedir.resolve() / ".lakewright")

    @property
    def basedir(self) -> Path:
        """The project's folder."""
        return self.folder.parent

    @property
    def socket(self) -> Path:
        """The socket on which requests arrive."""
        return self.folder / "serve.sock"

    @property
    def lock(self) -> Path:
        """The file that the running server has locked."""
        return self.folder / "serve.lock"

    @property
    def state(self) -> Path:
        """What the running server says about itself, as JSON."""
        return self.folder / "serve.json"

    @property
    def token(self) -> Path:
        """The token that programs send to the HTTP API."""
        return self.folder / "serve.token"

    @property
    def log(self) -> Path:
        """The output of a server that was started in the background."""
        return self.folder / "serve.log"

    def write(self, path: Path, text: str) -> None:
        """Write one of the files as a whole; only this user can read it."""
        part = path.with_name(f".{path.name}.{os.getpid()}")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        part.replace(path)

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Replace what the server says about itself."""
        self.write(self.state, json.dumps(state, indent=2) + "\n")

    def read_state(self) -> dict[str, Any] | None:
        """Return what the running server says about itself; None if no server runs."""
        if not self.is_locked():
            return None
        try:
            found: dict[str, Any] = json.loads(self.state.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # it is starting or stopping
            return {}
        return found

    def is_locked(self) -> bool:
        """Return whether a server runs: it holds the lock as long as it lives."""
        try:
            with self.lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the project's only server in the `with` block; its files are removed afterwards.

        Raises:
            UsageError: Another server runs.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        # Opened for appending: another server's lock file must stay as it is.
        with os.fdopen(os.open(self.lock, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"a server runs for the project in {self.basedir} already",
                    remedy=Phrase(
                        Command("serve", "status"), " shows it; ", Command("serve", "stop"), " stops it."
                    ),
                ) from None
            try:
                yield
            finally:
                for path in (self.state, self.socket, self.token):
                    with suppress(FileNotFoundError):
                        path.unlink()
