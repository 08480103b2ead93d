"""The documentation as JSON, for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping

from lakewright.documentation.document import Document

__all__ = ["json_files"]


def json_files(document: Document) -> Mapping[str, str]:
    """Return the file's text by its name."""
    return {"documentation.json": json.dumps(document.as_json(), indent=2, ensure_ascii=False) + "\n"}
