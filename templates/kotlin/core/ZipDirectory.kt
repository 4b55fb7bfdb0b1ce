package bundler.loader

import java.io.File
import java.io.IOException
import java.io.RandomAccessFile
import java.nio.Buffer
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.channels.FileChannel

/** Where an entry of an archive lies: [header] is the offset of its local header, which its data follow. */
internal class ZipEntryPlace(val size: Long, val isStored: Boolean, private val header: Long) {
    /** The offset of its data: the lengths of a local header may differ from those in the directory. */
    fun findData(archive: File): Long {
        val start = ByteArray(LOCAL_BYTES)
        RandomAccessFile(archive, "r").use {
            it.seek(header)
            it.readFully(start)
        }
        val fields = ByteBuffer.wrap(start).order(ByteOrder.LITTLE_ENDIAN)
        if (fields.getInt(0) != LOCAL) throw IOException("${archive.path} is damaged: no entry at $header")
        return header + LOCAL_BYTES + unsigned(fields.getShort(26)) + unsigned(fields.getShort(28))
    }

    private companion object {
        const val LOCAL = 0x04034b50
        const val LOCAL_BYTES = 30
    }
}

/**
 * The central directory of a zip archive, which Java's own reader keeps to itself: it says where an entry's data lie, so
 * that they can be mapped. Fields by the .ZIP file format specification 6.3.10, sections 4.3.12 to 4.3.16.
 */
internal class ZipDirectory(private val archive: File) {
    /** The entries below [prefix], by the rest of their names. Throws [IOException]. */
    fun read(prefix: String): Map<String, ZipEntryPlace> =
        RandomAccessFile(archive, "r").use { file ->
            val (start, size) = findDirectory(file)
            val directory = file.channel.map(FileChannel.MapMode.READ_ONLY, start, size).order(ByteOrder.LITTLE_ENDIAN)
            val found = LinkedHashMap<String, ZipEntryPlace>()
            while (directory.remaining() >= ENTRY_BYTES && directory.getInt(directory.position()) == ENTRY) {
                readEntry(directory, prefix, found)
            }
            found
        }

    private fun findDirectory(file: RandomAccessFile): Pair<Long, Long> {
        val length = file.length()
        val tail = minOf(length, END_BYTES + MAX_COMMENT)
        val end = file.channel.map(FileChannel.MapMode.READ_ONLY, length - tail, tail).order(ByteOrder.LITTLE_ENDIAN)
        for (at in (tail - END_BYTES).toInt() downTo 0) {
            if (end.getInt(at) == END) {
                val size = end.getInt(at + 12).toLong() and UNSIGNED
                val start = end.getInt(at + 16).toLong() and UNSIGNED
                if (start == UNSIGNED || start + size > length) throw IOException("${archive.path} is larger than 4 GB, or damaged")
                return start to size
            }
        }
        throw IOException("${archive.path} is not a zip archive")
    }

    private fun readEntry(directory: ByteBuffer, prefix: String, found: MutableMap<String, ZipEntryPlace>) {
        val at = directory.position()
        val nameBytes = ByteArray(unsigned(directory.getShort(at + 28)))
        directory.moveTo(at + ENTRY_BYTES)
        directory.get(nameBytes)
        val name = String(nameBytes, Charsets.UTF_8)
        if (name.startsWith(prefix) && !name.endsWith("/")) {
            val size = directory.getInt(at + 24).toLong() and UNSIGNED
            val header = directory.getInt(at + 42).toLong() and UNSIGNED
            found[name.removePrefix(prefix)] = ZipEntryPlace(size, directory.getShort(at + 10).toInt() == 0, header)
        }
        val extra = unsigned(directory.getShort(at + 30)) + unsigned(directory.getShort(at + 32))
        directory.moveTo(minOf(directory.limit(), at + ENTRY_BYTES + nameBytes.size + extra))
    }

    private companion object {
        const val END = 0x06054b50
        const val END_BYTES = 22L
        const val MAX_COMMENT = 65_535L
        const val ENTRY = 0x02014b50
        const val ENTRY_BYTES = 46
        const val UNSIGNED = 0xffffffffL
    }
}

/** By the method of [Buffer]: those of its subclasses that return themselves are missing on older Androids. */
internal fun Buffer.moveTo(place: Int) {
    position(place)
}

/** As [moveTo]. */
internal fun Buffer.shorten(end: Int) {
    limit(end)
}

internal fun unsigned(value: Short): Int = value.toInt() and 0xffff
