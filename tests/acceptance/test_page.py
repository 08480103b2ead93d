"""The documentation page in a real browser, which runs only the page's own script."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.unit.documentation.documents import PRICES, make_document

from lakewright.documentation.pages.rendering import anchor, html_files

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CANARY = "<script>document.title = 'hacked'</script><img src=x onerror=\"document.title = 'hacked'\">"


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
@pytest.mark.parametrize("is_inline", [True, False])
def test_a_browser_opens_the_item_that_a_link_names_and_runs_nothing_else(
    tmp_path: Path, is_inline: bool
) -> None:
    for name, text in html_files(make_document(CANARY), is_inline=is_inline).items():
        (tmp_path / name).write_text(text)

    page = _rendered((tmp_path / "index.html").as_uri() + f"#{anchor(PRICES)}", tmp_path / "profile")

    opened = re.findall(r'<details class="item[^"]*" id="([^"]*)"[^>]* open=""', page)
    assert opened == [anchor(PRICES)]
    assert "<title>hacked" not in page
    assert page.count("<script") == 1


def _rendered(address: str, profile: Path) -> str:
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    done = subprocess.run(
        [*command, "--dump-dom", address], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout
