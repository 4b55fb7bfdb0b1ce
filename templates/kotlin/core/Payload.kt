package bundler.loader

import java.io.File
import java.io.FileNotFoundException
import java.io.IOException
import java.io.RandomAccessFile
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.channels.FileChannel

/** Where the files of a bundle are: a folder, or an archive such as a jar or an APK. */
public interface Payload {
    /** Changes whenever the files may have changed. Checks of the same identity are remembered. */
    public val identity: String

    /** The size of a file in bytes. Throws [IOException]. */
    public fun size(path: String): Long

    /** Bytes of a file, mapped into memory and not read yet: at most 2 GB of them at once. Throws [IOException]. */
    public fun map(path: String, start: Long, size: Long): ByteBuffer

    /** The file itself, where it is one of its own; null inside of an archive. */
    public fun file(path: String): File?

    /** The file's bytes as a copy, for small ones. Throws [IOException]. */
    public fun read(path: String): ByteArray {
        val mapped = map(path, 0, size(path))
        return ByteArray(mapped.remaining()).also { mapped.get(it) }
    }

    /** All paths below [folder], sorted. Throws [IOException]. */
    public fun list(folder: String): List<String>
}

/** The files of a bundle in a folder. */
public class FolderPayload(private val root: File) : Payload {
    override val identity: String
        get() = list("").joinToString("\n") { "$it ${File(root, it).length()} ${File(root, it).lastModified()}" }

    override fun size(path: String): Long =
        File(root, path).let { if (it.isFile) it.length() else throw FileNotFoundException("${it.path} is not there") }

    override fun map(path: String, start: Long, size: Long): ByteBuffer = mapRange(File(root, path), start, size)

    override fun file(path: String): File = File(root, path)

    override fun list(folder: String): List<String> {
        val start = File(root, folder)
        return start.walkTopDown().filter { it.isFile }.map { it.relativeTo(root).invariantSeparatorsPath }.sorted().toList()
    }

    override fun toString(): String = root.path
}

/**
 * The files of a bundle in an archive, below [prefix]. A file that is stored without compression, as bundler writes
 * them, is mapped where it lies.
 */
public class ArchivePayload(private val archive: File, private val prefix: String) : Payload {
    private val entries: Map<String, ZipEntryPlace> by lazy { ZipDirectory(archive).read(prefix) }

    override val identity: String get() = "${archive.path} ${archive.length()} ${archive.lastModified()}"

    override fun size(path: String): Long = find(path).size

    override fun map(path: String, start: Long, size: Long): ByteBuffer {
        val entry = find(path)
        if (!entry.isStored) {
            throw IncompatibleException(
                "$path is compressed in ${archive.path}",
                why = "the runtime reads the files of a bundle where they lie",
                next = "put the bundle's own jar on the class path as it is, or open the bundle with a FolderPayload",
            )
        }
        if (start + size > entry.size) throw IOException("$path has ${entry.size} bytes, and ${start + size} were asked for")
        return mapRange(archive, entry.findData(archive) + start, size)
    }

    private fun find(path: String): ZipEntryPlace =
        entries[path] ?: throw FileNotFoundException("$path is not in ${archive.path}")

    override fun file(path: String): File? = null

    override fun list(folder: String): List<String> =
        entries.keys.filter { folder.isEmpty() || it.startsWith("$folder/") }.sorted()

    override fun toString(): String = "${archive.path}!/$prefix"
}

/** Throws [IOException]; a file of 2 GB or more does not fit into one mapping. */
internal fun mapRange(file: File, start: Long, size: Long): ByteBuffer {
    if (size > Int.MAX_VALUE) throw IOException("${file.path} has a file of $size bytes, and a mapping holds ${Int.MAX_VALUE}")
    return RandomAccessFile(file, "r").use { opened ->
        opened.channel.map(FileChannel.MapMode.READ_ONLY, start, size).order(ByteOrder.nativeOrder())
    }
}
