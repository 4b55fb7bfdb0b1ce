@file:JvmName("StandIn")

package bundler.loader

import java.io.File

/** `PAYLOAD SHA256 COMMAND…`: runs the loader of a bundle for another device on this machine's Java. */
public fun main(arguments: Array<String>) {
    val (payload, sha256) = arguments
    runCommand(arguments.drop(2).toTypedArray() + "--stand-in", FolderPayload(File(payload)), sha256)
}
