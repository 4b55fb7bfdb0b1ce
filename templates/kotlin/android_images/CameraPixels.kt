package bundler.loader

import android.graphics.ImageFormat
import android.media.Image

/**
 * A camera's picture of format `YUV_420_888`, turned clockwise by [rotation] degrees, within the crop that it has. Throws
 * [InputException] for another format.
 */
internal fun readCamera(image: Image, rotation: Int): Pixels {
    if (image.format != ImageFormat.YUV_420_888) {
        throw InputException("the image has format ${image.format}, and YUV_420_888 (${ImageFormat.YUV_420_888}) is needed", next = "ask the camera for it, or decode the image to a Bitmap")
    }
    val planes = image.planes.map { YuvPlane(it.buffer, it.rowStride, it.pixelStride) }
    val crop = image.cropRect
    return YuvPixels(planes, YuvArea(crop.left, crop.top, crop.width(), crop.height()), rotation)
}
