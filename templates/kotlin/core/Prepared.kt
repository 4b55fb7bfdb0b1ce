package bundler.loader

import java.io.File
import java.io.IOException

/**
 * What this device generated for one variant, or will: a folder with a model that the provider opens as it is.
 *
 * Its name changes with the model, the runtime, the provider's library, the chip and the system's software: after an update
 * of one of them nothing is there, and it is generated anew. Beside the files lies a list of their checksums; a folder that
 * lacks it, or that says why its content is not used, counts as none.
 */
internal class Prepared(private val variant: VariantConfig, label: String, private val host: Host, runtime: String) {
    private val stem = "prepared-${sha256(label.toByteArray()).take(16)}-"
    private val key = sha256(listOf(variant.identity, runtime, host.software, host.chip.orEmpty(), describeLibraries()).joinToString("\n").toByteArray())

    /** Null where the host has no private folder. */
    val folder: File? = host.store?.let { File(it, stem + key.take(32)) }

    /** The model to open, after its files were checked; null where it has not been generated. Throws [IntegrityException]. */
    fun find(): File? {
        val lines = readRecord() ?: return null
        if (lines.firstOrNull() != READY) return null
        val checks = Checks(FolderPayload(checkNotNull(folder)), host, Verify.ONCE)
        lines.drop(1).map(::parseLine).forEach(checks::check)
        checks.save()
        return File(folder, MODEL)
    }

    /** Why what was generated is not used; empty where nothing was, or where it is. */
    fun findRefusal(): String = readRecord()?.takeIf { it.firstOrNull() != READY }?.firstOrNull().orEmpty()

    /** An empty folder to generate in; what interrupted attempts left is removed. Throws [IOException]. */
    fun startDraft(): File {
        val store = host.store ?: throw IOException("there is no private folder")
        clear(store) { it.startsWith(DRAFT + stem) }
        val room = variant.files.sumOf { it.size } * ROOM
        store.mkdirs()
        if (store.usableSpace < room) throw IOException("$store has ${store.usableSpace} bytes free, and ${room} are needed")
        return File(store, DRAFT + stem + key.take(32)).also { if (!it.mkdirs()) throw IOException("cannot make $it") }
    }

    /** Put a draft into place, with the checksums of its files, or with the reason why it is not used. Throws [IOException]. */
    fun publish(draft: File, refusal: String = "") {
        val files = if (refusal.isEmpty()) FolderPayload(draft).list("") else emptyList()
        val lines = files.map { path -> File(draft, path).let { "${sha256Of(it)} ${it.length()} $path" } }
        File(draft, RECORD).writeText((listOf(refusal.ifEmpty { READY }) + lines).joinToString("\n"))
        val target = checkNotNull(folder)
        clear(checkNotNull(target.parentFile)) { it.startsWith(stem) }
        if (!draft.renameTo(target)) throw IOException("cannot rename $draft to $target")
    }

    private fun readRecord(): List<String>? =
        folder?.let { File(it, RECORD) }?.takeIf { it.isFile && it.length() < MAX_RECORD }?.readLines()

    private fun parseLine(line: String): PayloadFile {
        val (sha256, size, path) = line.split(' ', limit = 3).takeIf { it.size == 3 } ?: throw damaged()
        if (leadsOut(path)) throw damaged()
        return PayloadFile(path, size.toLongOrNull() ?: throw damaged(), sha256)
    }

    private fun damaged() = IntegrityException("the list of files in $folder is damaged", next = "call prewarm() again")

    private fun describeLibraries() = variant.providers.mapNotNull { host.findPlugin(it.name) }.joinToString("\n") { "$it ${it.length()} ${it.lastModified()}" }

    private fun sha256Of(file: File) = Checks.hash(FolderPayload(checkNotNull(file.parentFile)), file.name, file.length())

    private fun clear(store: File, isOld: (String) -> Boolean) {
        store.listFiles { file -> isOld(file.name) }?.forEach(File::deleteRecursively)
    }

    companion object {
        const val MODEL = "model.onnx"
        private const val DRAFT = "making-"
        private const val RECORD = "files.txt"
        private const val READY = "ready"
        private const val MAX_RECORD = 1L shl 20

        /** Nothing is generated with less free space than this multiple of the model's size. */
        private const val ROOM = 4
    }
}
