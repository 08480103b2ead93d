"""The real command, run as a user runs it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.documents import checked

BIN = Path(sys.executable).parent
PATH = f"{BIN}{os.pathsep}{os.environ['PATH']}"


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def all(self) -> str:
        """Everything that it printed."""
        return self.out + self.err


@dataclass(frozen=True)
class Lakewright:
    """The command, started in a folder."""

    folder: Path

    def run(self, *arguments: str, **environ: str) -> Done:
        """Return how `lakewright ARGUMENTS` ended."""
        return self._run([str(BIN / "lakewright"), *arguments], {"PATH": PATH, **environ})

    def shell(self, line: str) -> Done:
        """Return how a line ended that was pasted into a shell."""
        return self._run(["bash", "-c", line], {"PATH": PATH})

    def json(self, *arguments: str) -> Any:
        """Return the document that a command prints with `-o json`; nothing may fail."""
        done = self.run(*arguments, "-o", "json")
        assert done.code in (0, 4 if arguments[0] == "status" else 0), f"{shlex.join(arguments)}\n{done.all}"
        return checked(json.loads(done.out))

    def _run(self, command: list[str], environ: dict[str, str]) -> Done:
        begin = time.monotonic()
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr, time.monotonic() - begin)
