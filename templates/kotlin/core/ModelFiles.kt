package bundler.loader

import java.io.File
import java.io.IOException

/** Finds a variant's model in the payload: as a file, mapped out of an archive, or unpacked where it has other files. */
internal class ModelFiles(private val payload: Payload, private val host: Host) {
    /** The files must have been checked. Throws [IncompatibleException] where they cannot be made ready. */
    fun locate(variant: VariantConfig): ModelSource {
        val file = payload.file(variant.model)
        return when {
            file != null -> ModelSource.OnDisk(file)
            variant.files.size == 1 -> map(variant.model)
            else -> ModelSource.OnDisk(unpack(variant))
        }
    }

    private fun map(path: String): ModelSource =
        try {
            ModelSource.InMemory(payload.map(path, 0, payload.size(path)), path.endsWith(".ort"))
        } catch (error: IOException) {
            throw IncompatibleException("$path cannot be mapped into memory", why = firstLine(error), cause = error)
        }

    /**
     * The runtime looks for external data beside the model, so an archive's are unpacked once, each under its SHA-256's
     * folder, and checked whenever they are used.
     */
    private fun unpack(variant: VariantConfig): File {
        val store = host.store ?: throw IncompatibleException("there is no private folder to unpack ${variant.model} into")
        val root = File(store, "unpacked-${sha256(variant.files.joinToString("\n") { it.sha256 + it.path }.toByteArray()).take(32)}")
        try {
            for (file in variant.files) unpackFile(file, File(root, file.path))
        } catch (error: IOException) {
            throw IncompatibleException(
                "${variant.model} cannot be unpacked to $root",
                why = firstLine(error),
                next = "free space on the device",
                cause = error,
            )
        }
        val unpacked = Checks(FolderPayload(root), host, Verify.ONCE)
        variant.files.forEach(unpacked::check)
        unpacked.save()
        return File(root, variant.model)
    }

    private fun unpackFile(file: PayloadFile, target: File) {
        if (target.length() == file.size && target.isFile) return
        target.parentFile?.mkdirs()
        val draft = File.createTempFile("unpacking-", ".tmp", target.parentFile)
        try {
            draft.outputStream().channel.use { out ->
                for (start in 0 until file.size step WINDOW) {
                    val part = payload.map(file.path, start, minOf(WINDOW, file.size - start))
                    while (part.hasRemaining()) out.write(part)
                }
            }
            if (!draft.renameTo(target)) throw IOException("cannot rename to $target")
        } finally {
            draft.delete()
        }
    }

    private companion object {
        const val WINDOW = 64L shl 20
    }
}
