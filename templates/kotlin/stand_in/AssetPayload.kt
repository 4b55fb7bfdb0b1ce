package bundler.loader

import android.content.Context
import java.io.File

/** In place of an app's assets: the folder that they are in. */
public class AssetPayload(context: Context, private val root: String) : Payload by FolderPayload(File(context.assets, root)) {
    override fun toString(): String = "the assets in $root"
}
