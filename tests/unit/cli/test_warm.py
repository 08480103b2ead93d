"""What the host of a server's workers imports for them: rules of the server, "Warm session"."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

WORK = """
import json, sys, threading
from lakewright.cli import entry, warm
warm.preload()
threads, before = threading.active_count(), set(sys.modules)
code = entry.main(["process", "orders", "-q"])
print(json.dumps([code, threads, sorted(set(sys.modules) - before)]))
"""
PROJECT = "name: shop\nmodules: [model.yml]\nlake: {root_folder: lake}\n"
MODEL = "connections: {web: {}}\nentities: {orders: {id: 1, connection: web, processtype: full}}\n"


def test_a_worker_imports_nothing_that_its_host_could_have_imported(tmp_path: Path) -> None:
    (tmp_path / "project.yml").write_text(PROJECT)
    (tmp_path / "model.yml").write_text(MODEL)
    done = subprocess.run(
        [sys.executable, "-c", WORK], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    code, threads, imported = json.loads(done.stdout.splitlines()[-1])
    assert (code, imported) == (0, [])
    assert threads == 1  # a forked process has only the thread that forks
