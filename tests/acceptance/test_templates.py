"""What `init` writes runs at once, as it says; the smallest template does in the quickstart's test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.commands import InProcess

from lakewright.cli.commands.init import TEMPLATES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.mark.nightly
@pytest.mark.parametrize("template", [name for name in TEMPLATES if name != "minimal"])
def test_a_template_runs_as_it_says(tmp_path: Path, template: str, session: SparkSession) -> None:
    here = InProcess(tmp_path, session)
    here.json("init", "lake", "--template", template)

    typed, _ = TEMPLATES[template]
    done = here.run(*typed, "--project", "lake")

    assert done.code == 0, done.all
    assert " FAILED=0 " in done.out.splitlines()[-1]
    again = here.json("plan", *typed[1:2], "build", *typed[3:], "--project", "lake")
    assert again["status"] == "CLEAN"
    if template == "full":
        shown = json.dumps(here.json("test", "--project", "lake"))
        assert '"status": "SUCCESS"' in shown
        page = (tmp_path / "lake" / "generated-documentation" / "index.html").read_text()
        assert "4/4" in page
        assert "Turnover in euros" in page
