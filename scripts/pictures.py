"""Takes the pictures of the operator's page for the docs, in headless Chromium.

    python -m scripts.pictures [--folder FOLDER] [--to docs/images]

The lake is that of `lakewright demo`: four months of airports' data. Then the file of regions of the fifth
month arrives cut off, as if its download had ended early, and the run of that month fails. The project is
served as `lakewright serve` does, but without Spark, and each screen is saved in light and dark.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By

from lakewright.app import App
from lakewright.serve.http.service import make_service
from lakewright.serve.page.routes import Pages
from lakewright.serve.server_files import ServerFiles
from lakewright.serve.service import ServeOptions, Serving
from lakewright.serve.watched_project import WatchedProject
from lakewright.warm.requests import Requests

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH, LEAST_HEIGHT, MOST_HEIGHT = 1200, 700, 1050


ENTITY, UNDONE = "regions", "2022-04-01"
"""The entity that is shown, and the slice whose undo is."""

CUT, ARRIVED = "2022-05-01", 0.4
"""The month whose file is cut off, and the share of its lines that arrived."""


def make_lake(folder: Path) -> None:
    """Make the lake whose page is shown, unless it is there already."""
    if (folder / "project.yml").exists():
        return
    _lakewright("demo", str(folder), succeeds=True)
    file = folder / "data" / ENTITY / f"{CUT}.csv.gz"
    whole = folder / "later" / ENTITY / file.name
    lines = gzip.decompress(whole.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join(lines[: int(len(lines) * ARRIVED)]), mtime=0))
    _lakewright("apply", "--project", str(folder), succeeds=False)


def _lakewright(*arguments: str, succeeds: bool) -> None:
    done = subprocess.run([sys.executable, "-m", "lakewright", *arguments, "--no-serve"], check=False)
    if (done.returncode == 0) != succeeds:
        raise SystemExit(f"lakewright {arguments[0]} ended with {done.returncode}")


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve the page of a project, and yield the link to it."""
    files, said = ServerFiles(folder), list[str]()
    files.folder.mkdir(exist_ok=True)
    serving = Serving(
        options=ServeOptions(port=0, allow_actions=True),
        files=files,
        project=WatchedProject(lambda on_read: App.open(folder, environ={}, on_read=on_read)),
        requests=Requests(files.socket, {}, folder),
        runner="",
        report=said.append,
    )
    service = make_service(serving, Pages)
    service.start()
    try:
        yield said[0].split()[1]
    finally:
        service.stop()
        serving.project.close()
        files.token.unlink(missing_ok=True)


@contextmanager
def browser() -> Iterator[Any]:
    """Yield a browser without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = webdriver.Chrome(service=webdriver.ChromeService(shutil.which("chromedriver")), options=options)
    try:
        yield driver
    finally:
        driver.quit()


def picture(driver: Any, path: Path) -> None:
    """Save the page as a picture, as high as its content within limits."""
    for height in (LEAST_HEIGHT, 0):
        whole = int(driver.execute_script("return document.documentElement.scrollHeight"))
        size = {"width": WIDTH, "height": height or min(max(whole, LEAST_HEIGHT), MOST_HEIGHT)}
        device = {**size, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    path.parent.mkdir(parents=True, exist_ok=True)
    driver.save_screenshot(str(path))
    print(os.path.relpath(path))


def main() -> int:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where the lake is made, or was made by an earlier call")
    parser.add_argument("--to", type=Path, default=IMAGES, help="where the pictures go")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary, "airports")
        make_lake(folder)
        take(folder, given.to)
    return 0


def _last_run(folder: Path) -> str:
    app = App.open(folder, environ={})
    try:
        return next(app.journal.runs(1, project=app.project.name)).run_id
    finally:
        app.close()


def take(folder: Path, to: Path) -> None:
    """Take the pictures of a lake."""
    screens = {
        "inbox": "/",
        "run": f"/runs/{_last_run(folder)}",
        "item": f"/item?id={ENTITY}/{CUT}",
        "entity": f"/entities/{ENTITY}",
        "lineage": "/lineage",
        "undo": f"/undo?id={ENTITY}/{UNDONE}",
    }
    with serving(folder) as link, browser() as driver:
        driver.get(link)
        base = link.partition("/login/")[0]
        driver.get(f"{base}/")
        time.sleep(5)  # the look at bronze for the inbox is made in the background
        for name, path in screens.items():
            driver.get(f"{base}{path}")
            if driver.find_element(By.TAG_NAME, "h1").text == "Something went wrong":
                raise SystemExit(f"{path} shows an error")
            for scheme in ("light", "dark"):
                feature = {"name": "prefers-color-scheme", "value": scheme}
                driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
                picture(driver, to / f"{name}{'-dark' if scheme == 'dark' else ''}.png")


if __name__ == "__main__":
    sys.exit(main())
