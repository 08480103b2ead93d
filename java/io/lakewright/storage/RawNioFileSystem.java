package io.lakewright.storage;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.attribute.PosixFilePermissions;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's access to this machine's files, without the programs that Hadoop starts where its native library is missing.
 *
 * <p>Hadoop starts {@code chmod} for each file that it creates, and {@code readlink} twice for each that it renames:
 * a commit of Delta starts about twenty. Java does the same by itself. What differs between both is left to Hadoop:
 * folders, whose group bit {@code chmod} keeps and Java would clear, the sticky bit, and symbolic links.
 */
class RawNioFileSystem extends RawLocalFileSystem {

    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
        java.nio.file.Path file = pathToFile(path).toPath();
        if (permission.getStickyBit() || !Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
            super.setPermission(path, permission);
            return;
        }
        try {
            Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(permission.toString()));
        } catch (UnsupportedOperationException notPosix) {
            super.setPermission(path, permission);
        }
    }

    @Override
    public FileStatus getFileLinkStatus(Path path) throws IOException {
        boolean isLink = Files.isSymbolicLink(pathToFile(path).toPath());
        return isLink ? super.getFileLinkStatus(path) : getFileStatus(path);
    }
}
