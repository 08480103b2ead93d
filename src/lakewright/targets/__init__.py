"""Targets: the units that a job takes through the phases, one module for each kind."""

from __future__ import annotations

__all__ = ["DATASETS", "KINDS", "MEASURES", "NOT_OFFERED"]

KINDS = {
    "blackhole": "lakewright.targets.blackhole:BlackholeTarget",
    "compare": "lakewright.targets.compare:CompareTarget",
    "console": "lakewright.targets.console:ConsoleTarget",
    "copy": "lakewright.targets.copy:CopyTarget",
    "copyFile": "lakewright.targets.copy_file:CopyFileTarget",
    "count": "lakewright.targets.count:CountTarget",
    "deleteFile": "lakewright.targets.delete_file:DeleteFileTarget",
    "deltaVacuum": "lakewright.targets.delta_vacuum:DeltaVacuumTarget",
    "document": "lakewright.documentation.target:DocumentTarget",
    "documentation": "lakewright.documentation.target:DocumentTarget",
    "drop": "lakewright.targets.drop:DropTarget",
    "empty": "lakewright.targets.empty:EmptyTarget",
    "entity": "lakewright.targets.entity.target:EntityTarget",
    "file": "lakewright.targets.file:FileTarget",
    "getFile": "lakewright.targets.copy_file:GetFileTarget",
    "hiveDatabase": "lakewright.targets.hive_database:HiveDatabaseTarget",
    "jdbcCommand": "lakewright.targets.jdbc_command:JdbcCommandTarget",
    "local": "lakewright.targets.local:LocalTarget",
    "measure": "lakewright.targets.measure:MeasureTarget",
    "merge": "lakewright.targets.merge:MergeTarget",
    "mergeFiles": "lakewright.targets.merge_files:MergeFilesTarget",
    "null": "lakewright.targets.blackhole:BlackholeTarget",
    "putFile": "lakewright.targets.copy_file:PutFileTarget",
    "relation": "lakewright.targets.relation:RelationTarget",
    "schema": "lakewright.targets.schema:SchemaTarget",
    "truncate": "lakewright.targets.truncate:TruncateTarget",
    "validate": "lakewright.targets.assertions:ValidateTarget",
    "verify": "lakewright.targets.assertions:VerifyTarget",
}
"""Class of each kind; it is imported on first use."""

DATASETS = {
    "const": "lakewright.targets.datasets:ValuesDataset",
    "file": "lakewright.targets.datasets:FileDataset",
    "mapping": "lakewright.targets.datasets:MappingDataset",
    "relation": "lakewright.targets.datasets:RelationDataset",
    "values": "lakewright.targets.datasets:ValuesDataset",
}
"""Class of each kind of rows that targets copy, compare and print."""

MEASURES = {"sql": "lakewright.targets.measure:SqlMeasure"}
"""Class of each kind of numbers that a `measure` target takes."""

NOT_OFFERED = {
    "sftpUpload": "Copy the files outside of runs, or with a `command` hook.",
    "stream": "Streams are not supported.",
}
"""Kinds of Flowman that are not supported, with what to use instead."""
