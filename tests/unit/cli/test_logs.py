"""What log lines look like."""

from __future__ import annotations

import json
import logging

from lakewright.cli.output import logging_to
from lakewright.manifest.redaction import Redactor

log = logging.getLogger("lakewright.some.part")
REDACTED = Redactor(frozenset({"s3cr3t-value"})).value


def lines_of(*, is_json: bool, level: int = logging.INFO) -> list[str]:
    lines: list[str] = []
    with logging_to(lines.append, is_json=is_json, level=level, redacted=REDACTED):
        log.info("built %s\nDone. FAILED=0", "a s3cr3t-value", extra={"run_id": "r1", "target": "regions"})
        log.warning("built t0", extra={"instance": 0, "target": "t0"})
        log.debug("too small a thing")
        logging.getLogger("py4j").info("chatter")
        try:
            raise ValueError("with s3cr3t-value")
        except ValueError:
            log.exception("failed")
    log.error("after the end")
    return lines


def test_a_text_line_carries_its_extras_and_forges_no_other_line() -> None:
    lines = lines_of(is_json=False)
    assert len(lines) == 3
    assert lines[0].endswith(r"INFO built a ***\nDone. FAILED=0 target=regions")
    assert lines[1].endswith("WARNING built t0 instance=0")
    assert "ValueError: with ***" in lines[2]


def test_a_json_line_is_one_object() -> None:
    first, _, second = (json.loads(line) for line in lines_of(is_json=True))
    assert first["message"] == "built a ***\nDone. FAILED=0"
    assert (first["level"], first["logger"], first["run_id"]) == ("INFO", "lakewright.some.part", "r1")
    assert first["timestamp"].endswith("Z")
    assert second["exception"].endswith("ValueError: with ***")


def test_loggers_are_as_before_afterwards() -> None:
    def state() -> tuple[object, ...]:
        root = logging.getLogger()
        return (root.level, logging.getLogger("lakewright").level, tuple(root.handlers))

    before = state()
    lines_of(is_json=True, level=logging.DEBUG)
    assert state() == before


def test_what_py4j_says_by_the_root_logger_is_left_out() -> None:
    lines: list[str] = []
    with logging_to(lines.append, is_json=False, level=logging.INFO, redacted=REDACTED):
        for path in ("/lib/py4j/java_gateway.py", "/lib/other/library.py"):
            record = logging.LogRecord("root", logging.ERROR, path, 1, "sending failed", None, None)
            logging.getLogger().handle(record)
    assert len(lines) == 1
