package bundler.loader

import java.io.File
import java.nio.file.Files
import java.nio.file.LinkOption
import java.nio.file.attribute.PosixFilePermission

/** The Java virtual machine of a server or a desktop. */
public class JvmHost(
    override val standsIn: Boolean = false,
    override val store: File? = findStore(),
) : Host {
    override val systems: Set<String> = setOf(nameSystem())
    override val machines: Set<String> = nameMachines()

    /**
     * The release of ONNX Runtime that comes with this bundle has no telemetry: a program cannot set its own environment
     * in Java, and later releases look for `ORT_DISABLE_TELEMETRY` there before anything else runs.
     */
    override fun silence() {
        return
    }

    /** Keep the runtime's libraries in the store, so that it unpacks them once and leaves nothing behind. */
    override fun prepare() {
        store?.let { NativeLibraries(it).provide() }
    }

    private companion object {
        fun nameSystem(): String {
            val name = System.getProperty("os.name").orEmpty()
            return when {
                name.startsWith("Windows") -> "Windows"
                name.startsWith("Mac") -> "Darwin"
                else -> name
            }
        }

        fun nameMachines(): Set<String> =
            when (val name = System.getProperty("os.arch").orEmpty()) {
                "amd64", "x86_64" -> setOf("x86_64", "AMD64")
                "aarch64", "arm64" -> setOf("aarch64", "arm64", "ARM64")
                else -> setOf(name)
            }

        /** The user's cache folder, where no other user could have written; null where there is none. */
        fun findStore(): File? {
            val root = System.getenv("XDG_CACHE_HOME")?.takeIf { File(it).isAbsolute } ?: System.getenv("LOCALAPPDATA")
                ?: System.getProperty("user.home")?.takeIf { File(it).isAbsolute }?.let { "$it/.cache" }
            val folder = File(root ?: return null, "bundler-loader")
            return folder.takeIf { isOurs(it) }
        }

        private fun isOurs(folder: File): Boolean {
            val path = folder.toPath()
            if (!Files.exists(path, LinkOption.NOFOLLOW_LINKS)) return folder.mkdirs()
            if (Files.isSymbolicLink(path) || !Files.isDirectory(path)) return false
            return try {
                val mode = Files.getPosixFilePermissions(path, LinkOption.NOFOLLOW_LINKS)
                val owner = Files.getOwner(path, LinkOption.NOFOLLOW_LINKS).name
                owner in setOf(System.getProperty("user.name"), "root") &&
                    PosixFilePermission.GROUP_WRITE !in mode && PosixFilePermission.OTHERS_WRITE !in mode
            } catch (_: UnsupportedOperationException) {
                true // Windows: the folder's access list protects it.
            }
        }
    }
}
