package io.lakewright.storage;

import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;

import io.delta.storage.S3SingleDriverLogStore;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options.CreateFileOptionKeys;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log on S3, safe for any number of drivers: a commit is put only if its file is absent.
 *
 * <p>{@link S3SingleDriverLogStore} asks whether the file exists and then writes it; of two drivers that ask at
 * the same time, the second replaces the commit of the first. Here the store decides, by the header
 * {@code If-None-Match: *} of the request that completes the file. Reading and listing are those of Delta.
 *
 * <p>An error doesn't tell whether the file was written: the answer to a request that succeeded may be lost, and
 * the AWS SDK may then repeat the request and be refused because of its own file. So after each error the file is
 * read. Content that equals what was to be written is this commit's, because the first line of each commit names
 * a transaction by a random id.
 */
public class PutIfAbsentLogStore extends S3SingleDriverLogStore {

    /** Makes the log store of a session. */
    public PutIfAbsentLogStore(Configuration configuration) {
        super(configuration);
    }

    /**
     * Writes a file of the log.
     *
     * @throws FileAlreadyExistsException another writer's file is there, and {@code overwrite} is false
     * @throws IOException the file couldn't be written, or it isn't known whether it was
     */
    @Override
    public void write(Path path, Iterator<String> lines, Boolean overwrite, Configuration configuration)
            throws IOException {
        if (overwrite) {
            super.write(path, lines, true, configuration);
            return;
        }
        FileSystem files = path.getFileSystem(configuration);
        byte[] content = encode(lines);
        try {
            putIfAbsent(files, path, content);
        } catch (IOException error) {
            byte[] found = readOrNull(files, path, error);
            if (found == null) {
                throw error;
            }
            if (!Arrays.equals(found, content)) {
                FileAlreadyExistsException taken = new FileAlreadyExistsException(path.toString());
                taken.initCause(error);
                throw taken;
            }
        }
    }

    private static void putIfAbsent(FileSystem files, Path path, byte[] content) throws IOException {
        FSDataOutputStreamBuilder<?, ?> file = files.createFile(path).recursive();
        // `must`: a file system that doesn't know the option refuses it here, instead of replacing the file.
        file.must(CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE, true);
        try (FSDataOutputStream stream = file.build()) {
            stream.write(content);
        }
    }

    /** Returns the content of a file, or null if there is none. An error while reading goes to {@code cause}. */
    private static byte[] readOrNull(FileSystem files, Path path, IOException cause) throws IOException {
        try (InputStream stream = files.open(path)) {
            return stream.readAllBytes();
        } catch (FileNotFoundException absent) {
            return null;
        } catch (IOException error) {
            cause.addSuppressed(error);
            throw cause;
        }
    }

    private static byte[] encode(Iterator<String> lines) {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        while (lines.hasNext()) {
            content.writeBytes(lines.next().getBytes(StandardCharsets.UTF_8));
            content.write('\n');
        }
        return content.toByteArray();
    }
}
