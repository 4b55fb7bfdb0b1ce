package bundler.loader

import java.io.File
import java.io.IOException
import java.net.URI
import java.net.URL

/**
 * The files that were packed with the class [anchor]: in its jar, or in the folder that its resources were copied to.
 *
 * Throws [IntegrityException] where they are in neither.
 */
public fun findPayload(anchor: Class<*>): Payload {
    val url = anchor.getResource("payload/${BundleConfig.PATH}") ?: throw missing(anchor, "there is no such resource")
    return when (url.protocol) {
        "file" -> FolderPayload(checkNotNull(File(url.toURI()).parentFile))
        "jar" -> readJar(anchor, url)
        else -> throw missing(anchor, "it is at ${url.protocol}:, which this loader cannot map")
    }
}

private fun readJar(anchor: Class<*>, url: URL): Payload {
    val (archive, entry) = url.path.split("!/", limit = 2)
    if (!archive.startsWith("file:")) throw missing(anchor, "its archive is at $archive, inside of another one")
    try {
        return ArchivePayload(File(URI(archive)), URI(entry).path.removeSuffix(BundleConfig.PATH))
    } catch (error: IOException) {
        throw missing(anchor, firstLine(error))
    }
}

private fun missing(anchor: Class<*>, why: String) =
    IntegrityException(
        "the files of the bundle are not next to the class ${anchor.name}",
        why = why,
        next = "keep the bundle's jar as it is on the class path, or open the bundle with a FolderPayload",
    )
