"""Takes the pictures of the operator's page for the docs, of a project that has run, in headless Chromium.

    python -m scripts.pictures FOLDER [--entity NAME] [--to docs/images]

The project in the folder is served as `lakewright serve` does, but without Spark, and each screen is saved
in light and dark. Nothing is run and nothing is invented: make the project fail first, so that there is
something to see.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By

from lakewright.app import App
from lakewright.serve.http.service import make_service
from lakewright.serve.options import ServeOptions
from lakewright.serve.page.routes import Pages
from lakewright.serve.requests import Requests
from lakewright.serve.server_files import ServerFiles
from lakewright.serve.service import Serving

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH, LEAST_HEIGHT, MOST_HEIGHT = 1200, 700, 1150


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve the page of a project, and yield the link to it."""

    def open_app(on_read: Callable[[Path], None] = lambda _: None) -> App:
        return App.open(folder, environ={}, on_read=on_read)

    files, said = ServerFiles.of(folder), list[str]()
    files.folder.mkdir(exist_ok=True)
    serving = Serving(
        options=ServeOptions(port=0, allow_actions=True),
        files=files,
        environ={},
        open_app=open_app,
        requests=Requests(files.socket),
        runner="",
        report=said.append,
    )
    service = make_service(serving, Pages)
    service.start()
    try:
        yield said[0].split()[1]
    finally:
        service.stop()
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
    parser.add_argument("folder", type=Path, help="a project that has run")
    parser.add_argument("--entity", default="orders", help="the entity to show")
    parser.add_argument("--slice", help="the slice whose undo is shown")
    parser.add_argument("--to", type=Path, default=IMAGES, help="where the pictures go")
    given = parser.parse_args()
    screens = {"inbox": "/", "entity": f"/entities/{given.entity}", "lineage": "/lineage"}
    if given.slice:
        screens["undo"] = f"/undo?id={given.entity}/{given.slice}"
    with serving(given.folder) as link, browser() as driver:
        driver.get(link)
        base = link.partition("/login/")[0]
        driver.get(f"{base}/")
        time.sleep(5)  # the look at bronze for the inbox is made in the background
        for name, path in screens.items():
            driver.get(f"{base}{path}")
            driver.find_element(By.TAG_NAME, "h1")
            for scheme in ("light", "dark"):
                feature = {"name": "prefers-color-scheme", "value": scheme}
                driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
                picture(driver, given.to / f"{name}{'-dark' if scheme == 'dark' else ''}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
