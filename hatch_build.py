"""Puts the jar of `java/` into the wheel; `make setup` builds the one of an editable installation."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class JavaHook(BuildHookInterface):
    """Builds the jar before the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the jar, and name it as a file of the wheel although git ignores it."""
        if version == "editable":
            return
        module = runpy.run_path(str(Path(self.root) / "scripts" / "build_java.py"), run_name="build_java")
        module["build"]()
        build_data["artifacts"].append("/src/lakewright/spark/lakewright-storage.jar")
