package io.lakewright.storage;

import org.apache.hadoop.fs.LocalFileSystem;

/** Hadoop's local file system ({@code fs.file.impl}), with Hadoop's checksums, over {@link RawNioFileSystem}. */
public class NioLocalFileSystem extends LocalFileSystem {

    /** Makes the file system; Hadoop initializes it. */
    public NioLocalFileSystem() {
        super(new RawNioFileSystem());
    }
}
