package bundler.loader

/** Rows of a picture without transparency: red, green and blue, or grey, from 0 to 255. */
internal class ColourRows(private val channels: Int, private val background: IntArray) {
    private var pixels = IntArray(0)

    /** The elements of a row of [picture] into the first `width * channels` of [into]. */
    fun read(picture: Pixels, row: Int, into: IntArray) {
        if (pixels.size < picture.width) pixels = IntArray(picture.width)
        picture.read(row, pixels)
        for (at in 0 until picture.width) write(compose(pixels[at]), into, at * channels)
    }

    /** The colour of the background. */
    fun write(into: IntArray) = write(background[0] shl 16 or (background[1] shl 8) or background[2], into, 0)

    private fun write(colour: Int, into: IntArray, at: Int) {
        val red = colour shr 16 and 0xff
        val green = colour shr 8 and 0xff
        val blue = colour and 0xff
        if (channels == 1) {
            into[at] = red * 19595 + green * 38470 + blue * 7471 + 0x8000 shr 16
        } else {
            into[at] = red
            into[at + 1] = green
            into[at + 2] = blue
        }
    }

    /** A pixel over the background, in the fixed-point numbers of Pillow's `alpha_composite`. */
    private fun compose(pixel: Int): Int {
        val alpha = pixel ushr 24
        if (alpha == 0xff) return pixel
        var made = 0
        for (channel in 0..2) {
            val front = pixel shr (16 - 8 * channel) and 0xff
            made = made shl 8 or blend(front, background[channel], alpha)
        }
        return made
    }

    private fun blend(front: Int, behind: Int, alpha: Int): Int {
        val sum = front * alpha * 128 + behind * (255 - alpha) * 128 + (0x80 shl 7)
        return (sum shr 8) + sum shr 8 shr 7
    }
}
