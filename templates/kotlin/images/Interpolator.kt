package bundler.loader

/** Reads the nearest four or sixteen pixels, in double precision: as Pillow's `transform`, whatever the scale. */
internal class Interpolator(filter: ImageFilter) : Scaler {
    private val taps = if (filter == ImageFilter.BILINEAR) 2 else 4
    private var window: RowWindow? = null
    private val values = DoubleArray(4)

    override fun scale(picture: Pixels, colours: ColourRows, placement: Placement, canvas: Canvas) {
        val area = placement.area
        val channels = canvas.channels
        val length = picture.width * channels
        val held = window?.takeIf { it.fits(taps, length) } ?: RowWindow(taps, length).also { window = it }
        held.clear()
        val stepX = (placement.right - placement.left) / area.width
        val stepY = (placement.bottom - placement.top) / area.height
        for (y in 0 until area.height) {
            val row = placement.top + stepY * (y + 0.5) - 0.5
            val start = ((area.top + y) * canvas.width + area.left) * channels
            val first = Math.floor(row).toInt() - (taps / 2 - 1)
            for (tap in 0 until taps) read(picture, colours, limit(first + tap, picture.height), held)
            for (x in 0 until area.width) {
                val column = placement.left + stepX * (x + 0.5) - 0.5
                mix(held, picture, column, row, channels, canvas, start + x * channels)
            }
        }
    }

    private fun read(picture: Pixels, colours: ColourRows, row: Int, held: RowWindow) {
        if (!held.hold(row)) colours.read(picture, row, held.slot(row))
    }

    /** One pixel: along the rows first. Beyond its edges the picture goes on as its edge is. */
    private fun mix(held: RowWindow, picture: Pixels, column: Double, row: Double, channels: Int, canvas: Canvas, at: Int) {
        val left = Math.floor(column).toInt()
        val top = Math.floor(row).toInt()
        for (channel in 0 until channels) {
            for (tap in 0 until taps) {
                val line = held.slot(limit(top - (taps / 2 - 1) + tap, picture.height))
                values[tap] = blend(column - left) { line[limit(left - (taps / 2 - 1) + it, picture.width) * channels + channel].toDouble() }
            }
            val value = blend(row - top) { values[it] }
            canvas.values[at + channel] = Math.min(Math.max(value, 0.0), 255.0).toInt().toByte()
        }
    }

    private inline fun blend(share: Double, value: (Int) -> Double): Double {
        val first = value(0)
        val second = value(1)
        if (taps == 2) return first + (second - first) * share
        val third = value(2)
        val fourth = value(3)
        val linear = -first + third
        val square = 2 * (first - second) + third - fourth
        val cube = -first + second - third + fourth
        return second + share * (linear + share * (square + share * cube))
    }

    private fun limit(place: Int, size: Int) = Math.min(Math.max(place, 0), size - 1)
}
