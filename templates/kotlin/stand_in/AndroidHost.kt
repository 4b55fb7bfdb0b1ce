package bundler.loader

import android.content.Context

/** In place of an app's host: this machine's Java, whose system and processor are others. */
@Suppress("UNUSED_PARAMETER") // the generated class gives it
public class AndroidHost(context: Context) : Host by JvmHost(standsIn = true)
