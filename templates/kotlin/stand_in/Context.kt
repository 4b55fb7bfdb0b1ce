package android.content

import java.io.File

/** In place of Android's class: where the [assets] of an app are. */
public class Context(public val assets: File)
