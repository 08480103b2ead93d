package io.lakewright.storage;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.local.LocalConfigKeys;

/**
 * The same for {@code FileContext} ({@code fs.AbstractFileSystem.file.impl}), by which Delta writes its log: the
 * counterpart of Hadoop's {@code LocalFs}.
 */
public class NioLocalFs extends ChecksumFs {

    /** Makes the file system; Hadoop calls it with the URI of a file. */
    public NioLocalFs(URI uri, Configuration configuration) throws IOException, URISyntaxException {
        super(new Raw(configuration));
    }

    private static final class Raw extends DelegateToFileSystem {

        Raw(Configuration configuration) throws IOException, URISyntaxException {
            super(
                    FsConstants.LOCAL_FS_URI,
                    new RawNioFileSystem(),
                    configuration,
                    FsConstants.LOCAL_FS_URI.getScheme(),
                    false);
        }

        @Override
        public int getUriDefaultPort() {
            return -1;
        }

        @Override
        public FsServerDefaults getServerDefaults(Path path) throws IOException {
            return LocalConfigKeys.getServerDefaults();
        }

        @Override
        @Deprecated
        public FsServerDefaults getServerDefaults() throws IOException {
            return LocalConfigKeys.getServerDefaults();
        }

        @Override
        public boolean isValidName(String name) {
            return true;
        }
    }
}
