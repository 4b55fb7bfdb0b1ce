package bundler.loader

import java.io.File
import java.io.IOException
import java.net.JarURLConnection
import java.net.URL

/**
 * The runtime's native libraries, unpacked once.
 *
 * The runtime's own jar unpacks them at every start into a new temporary folder, which it leaves behind. Given a folder
 * with the libraries, it loads them from there instead.
 */
internal class NativeLibraries(private val store: File) {
    /** Let the runtime find them, unless the program has said where they are. Where that fails, it unpacks them itself. */
    fun provide() {
        if (System.getProperty(PROPERTY) != null) return
        val folder = nameFolder() ?: return
        val sources = NAMES.map(System::mapLibraryName).associateWith { find("$folder/$it") }
        if (sources.values.any { it == null }) return
        try {
            System.setProperty(PROPERTY, unpack(sources.mapValues { checkNotNull(it.value) }).path)
        } catch (_: IOException) {
            return
        }
    }

    private fun unpack(sources: Map<String, URL>): File {
        val identity = sources.values.joinToString("\n", transform = ::identify)
        val place = File(store, "natives-${sha256(identity.toByteArray()).take(32)}")
        if (isWhole(place, sources.keys)) return place
        store.mkdirs()
        val draft = File.createTempFile("natives-", ".tmp", store)
        draft.delete()
        if (!draft.mkdir()) throw IOException("cannot make $draft")
        try {
            sources.forEach { (name, source) -> source.openStream().use { input -> File(draft, name).outputStream().use { input.copyTo(it) } } }
            File(draft, RECORD).writeText(describe(draft, sources.keys))
            if (place.exists() && !isWhole(place, sources.keys)) place.deleteRecursively()
            if (!draft.renameTo(place) && !isWhole(place, sources.keys)) throw IOException("cannot rename to $place")
        } finally {
            draft.deleteRecursively()
        }
        return place
    }

    /** Whether the files are those that were unpacked: as large, and not written since. */
    private fun isWhole(place: File, names: Set<String>): Boolean {
        val record = File(place, RECORD)
        return record.isFile && record.readText() == describe(place, names)
    }

    private fun describe(place: File, names: Set<String>) =
        names.joinToString("\n") { "$it ${File(place, it).length()} ${File(place, it).lastModified()}" }

    private fun identify(source: URL): String {
        val connection = source.openConnection()
        val jar = (connection as? JarURLConnection)?.jarFileURL?.takeIf { it.protocol == "file" }?.let { File(it.toURI()) }
        return "$source ${jar?.length()} ${jar?.lastModified()}"
    }

    private fun find(path: String): URL? = NativeLibraries::class.java.classLoader.getResource(path)

    private companion object {
        /** The property by which the runtime's Java API takes a folder with its libraries. */
        const val PROPERTY = "onnxruntime.native.path"
        const val RECORD = "unpacked"
        val NAMES = listOf("onnxruntime", "onnxruntime4j_jni")

        fun nameFolder(): String? {
            val system = System.getProperty("os.name").orEmpty()
            val machine = when (System.getProperty("os.arch")) {
                "amd64", "x86_64" -> "x64"
                "aarch64", "arm64" -> "aarch64"
                else -> return null
            }
            val name = when {
                system.startsWith("Linux") -> "linux"
                system.startsWith("Mac") -> "osx"
                system.startsWith("Windows") -> "win"
                else -> return null
            }
            return "ai/onnxruntime/native/$name-$machine"
        }
    }
}
