package bundler.loader

import android.graphics.Bitmap
import android.media.Image

/** In place of what reads Android's pictures. */
@Suppress("FunctionName", "UNUSED_PARAMETER") // as the class that it stands for
internal fun BitmapPixels(bitmap: Bitmap): Pixels = throw UnsupportedOperationException()

@Suppress("UNUSED_PARAMETER") // as above
internal fun readCamera(image: Image, rotation: Int): Pixels = throw UnsupportedOperationException()
