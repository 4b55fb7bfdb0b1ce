package bundler.loader

import android.content.Context
import android.content.pm.PackageInfo
import android.content.res.AssetManager
import java.io.File
import java.io.FileInputStream
import java.io.FileNotFoundException
import java.io.IOException
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.channels.FileChannel

/**
 * The files of a bundle among an app's assets, below [root]. An asset that the APK stores without compression, as the
 * module's build file asks for, is mapped where it lies; a compressed one is read into memory.
 */
public class AssetPayload(context: Context, private val root: String) : Payload {
    private val assets: AssetManager = context.assets
    private val app = context.applicationContext

    /** Changes with each installation and update of the app. */
    override val identity: String
        get() {
            val info: PackageInfo = app.packageManager.getPackageInfo(app.packageName, 0)
            return "${app.packageName} ${info.lastUpdateTime} ${app.applicationInfo.sourceDir} $root"
        }

    override fun size(path: String): Long =
        try {
            assets.openFd("$root/$path").use { it.length }
        } catch (_: FileNotFoundException) {
            inflate(path).remaining().toLong()
        }

    override fun map(path: String, start: Long, size: Long): ByteBuffer =
        try {
            assets.openFd("$root/$path").use { opened ->
                if (start + size > opened.length) throw IOException("$path has ${opened.length} bytes, and ${start + size} were asked for")
                // The descriptor's own stream has a channel that cannot be mapped on newer Androids.
                FileInputStream(opened.fileDescriptor).use { stream ->
                    stream.channel.map(FileChannel.MapMode.READ_ONLY, opened.startOffset + start, size).order(ByteOrder.nativeOrder())
                }
            }
        } catch (_: FileNotFoundException) {
            cut(inflate(path), start.toInt(), size.toInt())
        }

    override fun file(path: String): File? = null

    override fun list(folder: String): List<String> = walk(folder).sorted()

    /** A name without anything below it is a file: Android knows no empty folders among assets. */
    private fun walk(folder: String): List<String> {
        val names = assets.list(if (folder.isEmpty()) root else "$root/$folder").orEmpty()
        val paths = names.map { if (folder.isEmpty()) it else "$folder/$it" }
        return paths.flatMap { path -> walk(path).ifEmpty { listOf(path) } }
    }

    /** What the APK compressed, as a whole. Throws [FileNotFoundException] where there is no such asset. */
    private fun inflate(path: String): ByteBuffer {
        val bytes = assets.open("$root/$path").use { it.readBytes() }
        return Tensor.allocate(bytes.size).put(bytes).apply { moveTo(0) }
    }

    private fun cut(whole: ByteBuffer, start: Int, size: Int): ByteBuffer {
        if (start + size > whole.remaining()) throw IOException("${whole.remaining()} bytes are there, and ${start + size} were asked for")
        whole.moveTo(start)
        return whole.slice().order(ByteOrder.nativeOrder()).also { it.shorten(size) }
    }

    override fun toString(): String = "the assets of ${app.packageName}"
}
