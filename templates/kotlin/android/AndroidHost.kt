package bundler.loader

import android.content.Context
import android.os.Build
import android.os.Process
import android.system.ErrnoException
import android.system.Os
import java.io.File

/** An app on Android. */
public class AndroidHost(context: Context) : Host {
    private val app = context.applicationContext
    private val natives = File(app.applicationInfo.nativeLibraryDir)

    override val systems: Set<String> = setOf("Android", "Linux")

    /** By the instruction set of this process: an app of 32 bits also runs on a processor of 64. */
    override val machines: Set<String> =
        when {
            !Process.is64Bit() -> setOf("armv7l")
            Build.SUPPORTED_64_BIT_ABIS.firstOrNull() == "x86_64" -> setOf("x86_64", "AMD64")
            else -> setOf("aarch64", "arm64", "ARM64")
        }

    /** `SM8650`; Android says it from version 12 on. */
    override val chip: String?
        get() = if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.S) Build.SOC_MODEL.takeIf { it != Build.UNKNOWN } else null

    override val software: String = Build.FINGERPRINT

    /** A folder of the app's own, which no backup takes to another phone. */
    override val store: File = File(app.noBackupFilesDir, "bundler-loader")

    /** The runtime looks for this variable when its library is loaded. */
    override fun silence() {
        set("ORT_DISABLE_TELEMETRY", "1")
    }

    /** Qualcomm's libraries for the NPU look there for those that run on it; an app may have its own path already. */
    override fun prepare() {
        if (natives.list().orEmpty().any { it.startsWith("libQnn") }) {
            val before = Os.getenv(ADSP)
            val path = listOf(natives.path, before.orEmpty()).filter { it.isNotEmpty() }
            if (before?.split(';')?.contains(natives.path) != true) set(ADSP, path.joinToString(";"))
        }
    }

    override fun findPlugin(provider: String): File? =
        PLUGINS[provider]?.let { File(natives, it) }?.takeIf { it.isFile }

    private fun set(name: String, value: String) {
        try {
            Os.setenv(name, value, true)
        } catch (error: ErrnoException) {
            throw IncompatibleException("the variable $name cannot be set", why = firstLine(error), cause = error)
        }
    }

    private companion object {
        const val ADSP = "ADSP_LIBRARY_PATH"

        /** Libraries of providers that come as plugins, as their Android archives name them. */
        val PLUGINS = mapOf("QNNExecutionProvider" to "libonnxruntime_providers_qnn.so")
    }
}
