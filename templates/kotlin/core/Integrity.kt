package bundler.loader

import java.io.File
import java.io.IOException
import java.security.MessageDigest

/** SHA-256 in hexadecimal. */
internal fun sha256(data: ByteArray): String = hex(MessageDigest.getInstance("SHA-256").also { it.update(data) })

private fun hex(digest: MessageDigest): String =
    digest.digest().joinToString("") { ((it.toInt() and 0xff) + 0x100).toString(16).substring(1) }

/**
 * The checks of a payload's files. A check in full is remembered in the host's store under the payload's identity, so
 * that it is done once after an installation; a record that is missing, damaged or of another identity counts as none.
 */
internal class Checks(private val payload: Payload, host: Host, verify: Verify) {
    private val identity by lazy { sha256(payload.identity.toByteArray()) }
    private val record = host.store?.let { File(it, "verified-${sha256(payload.toString().toByteArray()).take(16)}") }
    private val known: MutableSet<String> = HashSet(if (verify == Verify.ONCE) recall() else emptyList())
    private var changed = false

    /** Throws [IntegrityException] for a file that is missing or does not match its checksum. */
    fun check(file: PayloadFile) {
        val line = "${file.sha256} ${file.path}"
        if (synchronized(known) { line in known }) return
        val size = readOrThrow(file.path) { payload.size(file.path) }
        if (size != file.size) throw altered(file.path, "it has $size bytes, not ${file.size}")
        val digest = readOrThrow(file.path) { hash(payload, file.path, size) }
        if (digest != file.sha256) throw altered(file.path, "SHA-256 is $digest, not ${file.sha256}")
        synchronized(known) {
            known.add(line)
            changed = true
        }
    }

    /** The bytes of a small file whose SHA-256 is [sha256]. Throws [IntegrityException]. */
    fun readPinned(path: String, sha256: String): ByteArray {
        val data = readOrThrow(path) { payload.read(path) }
        val digest = sha256(data)
        if (digest != sha256) throw altered(path, "SHA-256 is $digest, not $sha256")
        return data
    }

    /** Remember what was checked. Where that fails, the next start checks again. */
    fun save() {
        val place = record ?: return
        val lines = synchronized(known) { if (changed) known.sorted() else return }
        try {
            place.parentFile?.mkdirs()
            val draft = File.createTempFile("verified-", ".tmp", place.parentFile)
            draft.writeText((listOf(identity) + lines).joinToString("\n"))
            if (!draft.renameTo(place)) draft.delete()
        } catch (_: IOException) {
            return
        }
    }

    private fun recall(): List<String> {
        val lines = record?.takeIf { it.isFile && it.length() < MAX_RECORD }?.readLines() ?: return emptyList()
        return if (lines.firstOrNull() == identity) lines.drop(1) else emptyList()
    }

    private inline fun <T> readOrThrow(path: String, read: () -> T): T =
        try {
            read()
        } catch (error: IOException) {
            throw IntegrityException("cannot read $path of $payload", why = firstLine(error), cause = error)
        }

    private fun altered(path: String, why: String) =
        IntegrityException("$path of $payload does not match its checksum", why = why)

    companion object {
        private const val MAX_RECORD = 16L shl 20

        /** Bytes of a file that are mapped at a time. */
        private const val WINDOW = 64L shl 20

        /** The SHA-256 of a file. Throws [IOException]. */
        fun hash(payload: Payload, path: String, size: Long): String {
            val digest = MessageDigest.getInstance("SHA-256")
            for (start in 0 until size step WINDOW) digest.update(payload.map(path, start, minOf(WINDOW, size - start)))
            return hex(digest)
        }
    }
}
