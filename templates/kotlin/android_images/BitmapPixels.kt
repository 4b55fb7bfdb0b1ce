package bundler.loader

import android.graphics.Bitmap
import android.os.Build

/** A picture of Android's. Throws [InputException] for one whose pixels only the graphics processor has. */
internal class BitmapPixels(private val bitmap: Bitmap) : Pixels {
    override val width: Int = bitmap.width
    override val height: Int = bitmap.height

    init {
        if (bitmap.isRecycled) throw InputException("the bitmap is recycled", next = "prepare it before you recycle it")
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.O && bitmap.config == Bitmap.Config.HARDWARE) {
            throw InputException(
                "the bitmap is in the memory of the graphics processor, where its pixels cannot be read",
                next = "decode it as Bitmap.Config.ARGB_8888, or copy it: bitmap.copy(Bitmap.Config.ARGB_8888, false)",
            )
        }
    }

    override fun read(row: Int, into: IntArray): Unit = bitmap.getPixels(into, 0, width, 0, row, width, 1)
}
