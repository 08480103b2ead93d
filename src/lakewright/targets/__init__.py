"""Targets: the units that a job takes through the phases, one module for each kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "compare": "lakewright.targets.compare:CompareTarget",
    "console": "lakewright.targets.console:ConsoleTarget",
    "copy": "lakewright.targets.copy:CopyTarget",
    "count": "lakewright.targets.count:CountTarget",
    "document": "lakewright.documentation.target:DocumentTarget",
    "documentation": "lakewright.documentation.target:DocumentTarget",
    "drop": "lakewright.targets.drop:DropTarget",
    "empty": "lakewright.targets.empty:EmptyTarget",
    "entity": "lakewright.targets.entity.target:EntityTarget",
    "file": "lakewright.targets.file:FileTarget",
    "jdbcCommand": "lakewright.targets.jdbc_command:JdbcCommandTarget",
    "measure": "lakewright.targets.measure:MeasureTarget",
    "merge": "lakewright.targets.merge:MergeTarget",
    "relation": "lakewright.targets.relation:RelationTarget",
    "truncate": "lakewright.targets.truncate:TruncateTarget",
    "validate": "lakewright.targets.validate:ValidateTarget",
    "verify": "lakewright.targets.verify:VerifyTarget",
}
"""Class of each kind; it is imported on first use."""

NOT_OFFERED = {
    "blackhole": "Use a relation target with a relation of kind: empty.",
    "copyFile": "Use a copy target.",
    "deleteFile": "Use a truncate or drop target.",
    "deltaVacuum": "Vacuum tables outside of runs.",
    "getFile": "Use a copy target.",
    "hiveDatabase": "Leave it out: creating a table or view creates its database.",
    "local": "Use a file target.",
    "mergeFiles": "Use a file target with parallelism: 1.",
    "null": "Use a relation target with a relation of kind: empty.",
    "putFile": "Use a copy target.",
    "sftpUpload": "Copy the files outside of runs.",
    "stream": "Streams are not supported.",
}
"""Kinds of Flowman that are not supported, with what to use instead."""
