"""The files of a Delta table at one version: their rows with their places, and a commit that replaces rows.

Delta's own reader asks Spark for the list of files, three to six jobs for each query of a table with deletion
vectors, and MERGE looks for the rows again that the comparison has already found: three queries more. Where a
version's checksum file has the list, both are left out: rows are read from these files, and a commit marks
the places that it is given. It is Delta's transaction that commits, with its checks of conflicts, statistics,
checkpoints and history (docs/decisions/032-rows-by-place.md).

Source: Delta's protocol, "Deletion Vectors" and "Version Checksum File".
"""

from __future__ import annotations

import struct
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakewright.spark.engine import Jvm, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PLACE = "_lakewright_place"
"""Column with the place of a row: the number of its file in the upper 32 bits, its index in the lower."""

_PLACE_SQL = "shiftleft(crc32(cast(_metadata.file_path as binary)), 32) | _metadata.row_index"

TESTED = ("4.4.",)
"""Beginnings of the versions of Delta whose classes were tried; others read and merge by SQL."""

MOST_BYTES = 256 << 20
"""Size of a table up to which its files are read as they are listed; chosen, not measured.

Of a larger one, Delta's reader may skip so many files by their statistics that its own queries pay off.
"""

_DELTA = "org.apache.spark.sql.delta"


@dataclass(frozen=True)
class DeltaFiles:
    """The files of a table at one version.

    Attributes:
        version: The version.
        location: The table's folder.
        size: The bytes of its files.
    """

    version: int
    location: str
    size: int
    _session: SparkSession
    _jvm: Jvm
    _log: Any
    _snapshot: Any
    _files: tuple[Any, ...]

    def frame(self) -> DataFrame:
        """Return the rows of the table; those of a large one are of the version at which they are read."""
        if self.size > MOST_BYTES:
            return self._session.read.format("delta").load(self.location)
        return self._listed

    @cached_property
    def _listed(self) -> DataFrame:
        """The rows of all files; a slice asks for them several times, and Spark analyses them once."""
        return self._frame(self._files)

    def rows(self, numbers: Collection[int] | None = None) -> DataFrame:
        """Return the rows with the column `PLACE`; with numbers of files, only their rows."""
        known = self._by_number or {}
        frame = self.frame() if numbers is None else self._frame([known[number] for number in numbers])
        return frame.selectExpr("*", f"{_PLACE_SQL} as {PLACE}")

    @property
    def has_rows_placed(self) -> bool:
        """Whether rows have places: Delta gives a row's index in tables that may have deletion vectors."""
        frame = self.frame()
        if "_metadata" in map(str.lower, frame.columns):  # a column of that name hides Spark's own
            return False
        metadata: Any = frame.select("_metadata").schema["_metadata"].dataType
        return "row_index" in metadata.names

    @property
    def has_places(self) -> bool:
        """Whether places lead to files: each has a number of its own, and says how many rows it has."""
        return self._by_number is not None

    def replace(
        self,
        rows: DataFrame,
        *,
        marked: Collection[int],
        removed: Collection[int],
        app_id: str,
        number: int,
        counts: tuple[int, int],
    ) -> None:
        """Commit a version without the rows at some places or in some files, and with other rows.

        Args:
            rows: Rows with the table's columns in its types.
            marked: The places of rows of this version that are marked as deleted.
            removed: The numbers of files of this version that are removed.
            app_id: The application whose number the commit carries.
            number: That number.
            counts: How many rows are inserted and how many updated, for the table's history.

        Raises:
            Py4JJavaError: Another commit came between.
        """
        packages = self._jvm.packages
        delta = packages.org.apache.spark.sql.delta
        none, some = packages.scala.Option.empty(), packages.scala.Option.apply
        inserted, updated = counts
        with _active(self._jvm):
            transaction = self._log.startTransaction(none, some(self._snapshot))
            transaction.readWholeTable()
            ended = [*self._marked(marked), *self._removed(removed)]
            added = list(_items(self._jvm, transaction.writeFiles(_java(rows))))
            now = some(packages.java.lang.System.currentTimeMillis())
            actions = [delta.actions.SetTransaction(app_id, number, now), *ended, *added]
            metrics = {
                "operationNumSourceRows": inserted + updated,
                "numTargetRowsInserted": inserted,
                "numTargetRowsUpdated": updated,
                "numTargetRowsCopied": 0,
                "numTargetFilesAdded": len(added),
            }
            transaction.registerSQLMetrics(self._jvm.session, _metrics(self._jvm, metrics))
            nothing = _sequence(self._jvm, ())
            merge = getattr(delta, "DeltaOperations$Merge")
            operation = merge(none, none, none, none, nothing, nothing, nothing)
            transaction.commit(_sequence(self._jvm, actions), operation)

    def _frame(self, files: Sequence[Any]) -> DataFrame:
        from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

        none = self._jvm.packages.scala.Option.empty()
        with _active(self._jvm):
            frame = self._log.createDataFrame(self._snapshot, _sequence(self._jvm, files), False, none)
        return ClassicFrame(frame, self._session)

    @cached_property
    def _by_number(self) -> Mapping[int, Any] | None:
        """The files by the numbers in places of their rows; None if rows cannot be marked."""
        packages = self._jvm.packages
        absolute = packages.org.apache.spark.sql.delta.util.DeltaFileOperations.absolutePath
        folder, spark_path = self._log.dataPath().toString(), packages.org.apache.spark.paths.SparkPath
        found = {
            zlib.crc32(spark_path.fromPath(absolute(folder, file.path())).urlEncoded().encode()): file
            for file in self._files
        }
        is_known = all(file.numPhysicalRecords().isDefined() for file in self._files)
        return found if is_known and len(found) == len(self._files) else None

    def _removed(self, numbers: Iterable[int]) -> list[Any]:
        """Return the actions that remove files."""
        now, known = self._jvm.packages.java.lang.System.currentTimeMillis(), self._by_number or {}
        return [known[number].removeWithTimestamp(now, True) for number in numbers]

    def _marked(self, places: Iterable[int]) -> list[Any]:
        """Write a file of deletion vectors; return the actions that put them in the place of former ones."""
        # Looked up once: each look at a package or a class is a call to the JVM.
        packages, known = self._jvm.packages, self._by_number or {}
        longs = _Longs(self._jvm)
        vectors = _module(self._jvm, f"{_DELTA}.deletionvectors.RoaringBitmapArray")
        portable = _module(self._jvm, f"{_DELTA}.deletionvectors.RoaringBitmapArrayFormat").Portable()
        descriptors = _module(self._jvm, f"{_DELTA}.actions.DeletionVectorDescriptor")
        stores = _module(self._jvm, f"{_DELTA}.storage.dv.DeletionVectorStore")
        store, folder = stores.createInstance(self._log.newDeltaHadoopConf()), self._log.dataPath()
        writers = _module(self._jvm, f"{_DELTA}.commands.DeletionVectorWriter")
        opened = writers.createWriter(store, store.pathWithFileSystem(folder), "")
        writer, file_id = opened._1(), opened._2()
        none, some = packages.scala.Option.empty(), packages.scala.Option.apply
        now = packages.java.lang.System.currentTimeMillis()
        indexes: dict[int, list[int]] = defaultdict(list)
        for place in places:
            indexes[file_number(place)].append(place & _LOW)
        actions: list[Any] = []
        try:
            for number, of_file in indexes.items():
                file = known[number]
                vector, former = vectors.apply(longs.of(of_file)), file.deletionVector()
                if former is not None:
                    vector.merge(store.read(former, folder))
                rows = vector.cardinality()
                if rows == file.numPhysicalRecords().get():
                    actions.append(file.removeWithTimestamp(now, True))
                    continue
                content = vector.serializeAsByteArray(portable)
                offset = some(writer.write(content).offset())
                descriptor = descriptors.onDiskWithRelativePath(file_id, "", len(content), rows, offset, none)
                pair = file.removeRows(descriptor, True, True)
                actions += [pair._1(), pair._2()]
        finally:
            writer.close()
        return actions


_LOW = 0xFFFFFFFF


def file_number(place: int) -> int:
    """Return the number of the file in which a place is.

    Example:
        >>> file_number(-1), file_number((7 << 32) + 3)
        (4294967295, 7)
    """
    return place >> 32 & _LOW


def file_number_sql(place: str) -> str:
    """Return SQL of the same."""
    return f"shiftright({place}, 32) & {_LOW}L"


def delta_files(session: SparkSession, location: str) -> DeltaFiles | None:
    """Return the files of the newest version of a table, or None where they must be read by Delta's reader.

    That is so with Spark Connect, a version of Delta that was not tried, and a table whose newest version has
    no checksum file that lists its files: Delta writes it for up to 50 files, other writers do not.

    Args:
        session: The session in which the rows are read.
        location: The table's folder.
    """
    jvm = jvm_of(session)
    if jvm is None or not _is_tested(jvm):
        return None
    none = jvm.packages.scala.Option.empty()
    with _active(jvm):
        log = jvm.packages.org.apache.spark.sql.delta.DeltaLog.forTable(jvm.session, location)
        snapshot = log.update(False, none, none)
        checksum = snapshot.checksumOpt()
        listed = checksum.get().allFiles() if checksum.isDefined() else none
    if not listed.isDefined():
        return None
    files, size = tuple(_items(jvm, listed.get())), int(checksum.get().tableSizeBytes())
    return DeltaFiles(snapshot.version(), location, size, session, jvm, log, snapshot, files)


def _is_tested(jvm: Jvm) -> bool:
    version = getattr(jvm.packages.io.delta, "package").VERSION  # noqa: B009 - a word of Scala
    return callable(version) and str(version()).startswith(TESTED)


@contextmanager
def _active(jvm: Jvm) -> Iterator[None]:
    """Make the session the active one of this thread in the JVM, which Delta asks for it."""
    with jvm.kept_active() as sessions:
        sessions.setActiveSession(jvm.session)
        yield


def _java(frame: DataFrame) -> Any:
    classic: Any = frame
    return classic._jdf


def _module(jvm: Jvm, name: str) -> Any:
    """Return an object of Scala."""
    found = jvm.packages
    *packages, own = name.split(".")
    for package in packages:
        found = getattr(found, package)
    return getattr(getattr(found, f"{own}$"), "MODULE$")


def _sequence(jvm: Jvm, items: Iterable[Any]) -> Any:
    """Return a list of Scala."""
    found = jvm.packages.scala.collection.mutable.ListBuffer()
    for item in items:
        found.addOne(item)
    return found.toList()


def _items(jvm: Jvm, sequence: Any) -> Iterator[Any]:
    """Yield what a sequence of Scala holds.

    An iterator of Java ends with an exception, of which PySpark asks the JVM for thirteen classes.
    """
    found = jvm.packages.scala.jdk.javaapi.CollectionConverters.asJava(sequence)
    return (found[number] for number in range(len(found)))


class _Longs:
    """Makes sequences of Scala's `Long`, whose numbers go to the JVM at once and not one by one."""

    def __init__(self, jvm: Jvm) -> None:
        self._array, self._kind = jvm.array, jvm.packages.long
        self._wrapped_bytes = jvm.packages.java.nio.ByteBuffer.wrap
        self._wrapped = jvm.packages.scala.runtime.ScalaRunTime.wrapLongArray

    def of(self, values: Sequence[int]) -> Any:
        """Return the sequence with these numbers."""
        numbers = self._array(self._kind, len(values))
        self._wrapped_bytes(struct.pack(f">{len(values)}q", *values)).asLongBuffer().get(numbers)
        return self._wrapped(numbers)


def _metrics(jvm: Jvm, counts: Mapping[str, int]) -> Any:
    """Return counts as metrics of a query."""
    made = _module(jvm, "org.apache.spark.sql.execution.metric.SQLMetrics")
    found = _module(jvm, "scala.collection.immutable.Map").empty()
    for name, count in counts.items():
        metric = made.createMetric(jvm.context, name)
        metric.set(count)
        found = found.updated(name, metric)
    return found
