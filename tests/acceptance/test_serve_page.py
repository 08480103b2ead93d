"""The operator's page in a real browser: it decides, resolves, applies what is due, and undoes a slice."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from tests.acceptance.lake import SmallLake

from lakewright.app import TRIGGER, App
from lakewright.serve.http.service import HttpService, make_service
from lakewright.serve.page.routes import Pages
from lakewright.serve.server_files import ServerFiles
from lakewright.serve.service import ServeOptions, Serving
from lakewright.serve.watched_project import WatchedProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
SECONDS = 90


class InThread:
    """Runs the commands that the page begins in this process, on the tests' session."""

    def __init__(self, lake: SmallLake) -> None:
        self.lake = lake

    def begin(self, arguments: Sequence[str], **given: Any) -> Any:
        return Running(self.lake, arguments, given)


class Running:
    def __init__(self, lake: SmallLake, arguments: Sequence[str], given: Mapping[str, Any]) -> None:
        self.code = 1
        self.thread = threading.Thread(target=self.run, args=(lake, arguments, given))
        self.thread.start()

    def run(self, lake: SmallLake, arguments: Sequence[str], given: Mapping[str, Any]) -> None:
        done = lake.run(*arguments, **{TRIGGER: given["trigger"]})
        for stream, text in ((given["stdout"], done.out), (given["stderr"], done.err)):
            stream.write(text.encode())
            stream.flush()
        self.code = done.code

    def interrupt(self, number: int = 2) -> None:
        raise AssertionError("nobody cancels here")

    def wait(self, timeout: float | None = None) -> int:
        self.thread.join()
        return self.code


@contextmanager
def page_of(lake: SmallLake) -> Iterator[tuple[HttpService, str]]:
    """Yield a server of a lake, and the link to its page."""
    files = ServerFiles(lake.folder)
    files.folder.mkdir(exist_ok=True)
    said: list[str] = []
    project = WatchedProject(lambda on_read: App.open(lake.folder, environ={}, on_read=on_read))
    service = make_service(
        Serving(
            options=ServeOptions(port=0, allow_actions=True, allow_data=True),
            files=files,
            project=project,
            requests=InThread(lake),  # type: ignore[arg-type]
            runner="",
            report=said.append,
        ),
        Pages,
    )
    service.start()
    try:
        yield service, said[0].split()[1]
    finally:
        service.stop()
        project.close()


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(service=webdriver.ChromeService(DRIVER), options=options)
    try:
        yield driver
    finally:
        driver.quit()


def shows(driver: webdriver.Chrome, *texts: str) -> str:
    """Return the words of the page once it shows some texts."""

    def found(_: object) -> str | None:
        body: str = driver.execute_script("return document.body ? document.body.innerText : ''")
        return body if all(text in body for text in texts) else None

    return str(WebDriverWait(driver, SECONDS, 0.2).until(found, f"{texts} at {driver.current_url}"))


def fill_in(driver: webdriver.Chrome, summary: str, reason: str) -> None:
    """Open a form by its words, and send it with a reason."""
    (form,) = [
        each
        for each in driver.find_elements(By.CSS_SELECTOR, "details.doing")
        if each.find_element(By.TAG_NAME, "summary").text.startswith(summary)
    ][:1]
    form.find_element(By.TAG_NAME, "summary").click()
    form.find_element(By.NAME, "reason").send_keys(reason, Keys.ENTER)


def undo(driver: webdriver.Chrome, url: str, name: str, reason: str) -> None:
    """Undo a slice of `customers` from its page, after a look at what that would change."""
    driver.get(f"{url}/entities/customers")
    driver.find_element(By.LINK_TEXT, name).click()
    shows(driver, "processed")
    driver.find_element(By.LINK_TEXT, "Undo…").click()
    shows(driver, "What would happen", "Nothing has been written yet")
    driver.find_element(By.XPATH, "//button[text()='Compare the rows']").click()
    shows(driver, "What would change", "Some that go", "Bob")
    driver.back()
    shows(driver, "What would happen")
    fill_in(driver, "Undo the slice", reason)
    shows(driver, "success", reason, "Its document")


@pytest.mark.spark
@pytest.mark.skipif(BROWSER is None or DRIVER is None, reason="needs Chromium and chromedriver")
def test_an_operator_decides_resolves_a_failure_applies_what_is_due_and_undoes_a_slice(
    tmp_path: Path, session: SparkSession
) -> None:
    lake = SmallLake.make(tmp_path / "small", session)
    lake.slice("customers", "2022-01-01", [{"id": 1, "name": "Ann"}])
    broken = lake.slice("customers", "2022-01-02", [{"id": None, "name": "Bob"}])
    assert lake.run("job", "daily", "build").code == 1
    lake.slice("customers", "2021-12-31", [{"id": 3, "name": "Cid"}])

    with page_of(lake) as (service, link), chromium() as driver:
        driver.get(link)
        text = shows(driver, "2 things need you", "customers/2022-01-02.parquet")
        assert "business key" in text
        assert "lakewright decide customers/2021-12-31.parquet skip" in text
        assert driver.get_cookies()[0]["httpOnly"] is True

        fill_in(driver, "Leave it out", "a test file")
        shows(driver, "Decided", "1 thing needs you")

        driver.find_element(By.LINK_TEXT, "customers/2022-01-02.parquet").click()
        shows(driver, "What happened", "new", "processing", "failed")

        lake.slice("customers", "2022-01-02", [{"id": 2, "name": "Bob"}])
        fill_in(driver, "Resolve", "the source sent it again")
        shows(driver, "Resolved: the slice is ready again", "Reason: the source sent it again")

        driver.get(f"{service.url}/")
        shows(driver, "Nothing needs you", "Due", "2022-01-02.parquet")
        fill_in(driver, "Apply", "mended")
        shows(driver, "lakewright apply", "mended")
        shows(driver, "success", "Steps taken", "Its document")
        driver.find_element(By.LINK_TEXT, "Runs").click()
        shows(driver, "daily build")
        driver.find_element(By.LINK_TEXT, "daily build").click()
        shows(driver, "customers", "1 slice processed: 2022-01-02.parquet")

        driver.find_element(By.TAG_NAME, "body").send_keys("/")
        driver.switch_to.active_element.send_keys("customers", Keys.ENTER)
        shows(driver, "for “customers”")
        driver.find_element(By.CSS_SELECTOR, "main a[href='/entities/customers']").click()
        shows(driver, "The last 3 slices", "Sample rows", "Ann", "Bob")

        driver.find_element(By.LINK_TEXT, "Inbox").click()
        shows(driver, "Nothing needs you")
        undo(driver, service.url, "2022-01-02.parquet", "it was another shop's file")
        told: Any = driver.execute("getLog", {"type": "browser"})["value"]
        assert [each for each in told if each["level"] == "SEVERE"] == []

    assert {row["name"] for row in lake.silver("customers")} == {"Ann"}
    history = lake.json("manifest", "show", "customers/2022-01-02.parquet")["records"]
    reasons = [record["payload"]["data"].get("reason") for record in history if record["state"] == "RESOLVED"]
    assert reasons == ["the source sent it again"]
    assert history[-1]["state"] == "SKIPPED"
    assert history[-1]["payload"]["data"]["reason"].endswith(": it was another shop's file")
    assert broken.exists()
