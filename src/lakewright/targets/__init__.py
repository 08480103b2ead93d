"""Targets: the units that a job takes through the phases, one module for each kind."""

from __future__ import annotations

__all__ = ["DATASETS", "KINDS", "MEASURES", "NOT_OFFERED"]

KINDS = {
    "blackhole": "lakewright.targets.readers:BlackholeTarget",
    "compare": "lakewright.targets.verification:CompareTarget",
    "console": "lakewright.targets.readers:ConsoleTarget",
    "copy": "lakewright.targets.copy:CopyTarget",
    "copyFile": "lakewright.targets.file_output:CopyFileTarget",
    "count": "lakewright.targets.readers:CountTarget",
    "deleteFile": "lakewright.targets.removal:DeleteFileTarget",
    "deltaVacuum": "lakewright.targets.removal:DeltaVacuumTarget",
    "document": "lakewright.documentation.target:DocumentTarget",
    "documentation": "lakewright.documentation.target:DocumentTarget",
    "drop": "lakewright.targets.removal:DropTarget",
    "empty": "lakewright.targets.readers:EmptyTarget",
    "entity": "lakewright.targets.entity.target:EntityTarget",
    "file": "lakewright.targets.relation:FileTarget",
    "getFile": "lakewright.targets.file_output:GetFileTarget",
    "hiveDatabase": "lakewright.targets.hive_database:HiveDatabaseTarget",
    "jdbcCommand": "lakewright.targets.jdbc_command:JdbcCommandTarget",
    "local": "lakewright.targets.file_output:LocalTarget",
    "measure": "lakewright.targets.verification:MeasureTarget",
    "merge": "lakewright.targets.relation:MergeTarget",
    "mergeFiles": "lakewright.targets.file_output:MergeFilesTarget",
    "null": "lakewright.targets.readers:BlackholeTarget",
    "putFile": "lakewright.targets.file_output:PutFileTarget",
    "relation": "lakewright.targets.relation:RelationTarget",
    "schema": "lakewright.targets.file_output:SchemaTarget",
    "truncate": "lakewright.targets.removal:TruncateTarget",
    "validate": "lakewright.targets.verification:ValidateTarget",
    "verify": "lakewright.targets.verification:VerifyTarget",
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

MEASURES = {"sql": "lakewright.targets.verification:SqlMeasure"}
"""Class of each kind of numbers that a `measure` target takes."""

NOT_OFFERED = {
    "sftpUpload": "Copy the files outside of runs, or with a `command` hook.",
    "stream": "Streams are not supported.",
}
"""Kinds of Flowman that are not supported, with what to use instead."""
