package bundler.loader

/** A picture of 8 bits a channel, with the channels of a pixel side by side. */
internal class Canvas(val width: Int, val height: Int, val channels: Int) {
    val values = ByteArray(width * height * channels)

    /** Make every pixel this colour. */
    fun fill(colour: IntArray) {
        for (at in values.indices) values[at] = colour[at % channels].toByte()
    }
}

/**
 * Scales a part of a picture onto a part of a canvas, to the same bytes as Pillow. It keeps its memory for the next
 * picture, and is used by one thread at a time.
 */
internal interface Scaler {
    fun scale(picture: Pixels, colours: ColourRows, placement: Placement, canvas: Canvas)
}

internal fun ImageRecord.makeScaler(): Scaler =
    when {
        filter == ImageFilter.NEAREST -> NearestScaler(single = antialias)
        antialias -> Resampler(filter)
        else -> Interpolator(filter)
    }

/** Rows that are needed several times, one after the other: the last [count] of them. */
internal class RowWindow(private val count: Int, val length: Int) {
    private val rows = Array(count) { IntArray(length) }
    private val held = IntArray(count) { -1 }

    /** The memory for a row, and whether the row must still be made. */
    fun slot(row: Int): IntArray = rows[row % count]

    /** Whether a row is held; it counts as held from then on. */
    fun hold(row: Int): Boolean = (held[row % count] == row).also { held[row % count] = row }

    fun clear() = held.fill(-1)

    fun fits(rows: Int, elements: Int) = rows == count && elements == length
}

/** Takes the pixel under the centre of each of the canvas'; [single]: the part's edges are in single precision, as Pillow's `resize` has them. */
internal class NearestScaler(private val single: Boolean) : Scaler {
    private var row = IntArray(0)
    private var columns = IntArray(0)
    private var rows = IntArray(0)

    override fun scale(picture: Pixels, colours: ColourRows, placement: Placement, canvas: Canvas) {
        val area = placement.area
        val channels = canvas.channels
        if (row.size < picture.width * channels) row = IntArray(picture.width * channels)
        columns = list(columns, area.width, placement.left, placement.right, picture.width)
        rows = list(rows, area.height, placement.top, placement.bottom, picture.height)
        var read = -1
        for (y in 0 until area.height) {
            if (rows[y] != read) colours.read(picture, rows[y], row)
            read = rows[y]
            var at = ((area.top + y) * canvas.width + area.left) * channels
            for (column in columns) {
                for (channel in 0 until channels) canvas.values[at++] = row[column * channels + channel].toByte()
            }
        }
    }

    /** Places are added up, as Pillow does: products would differ in the last bit. */
    private fun list(memory: IntArray, count: Int, from: Double, to: Double, size: Int): IntArray {
        val made = if (memory.size == count) memory else IntArray(count)
        val step = (if (single) (to.toFloat() - from.toFloat()).toDouble() else to - from) / count
        var place = (if (single) from.toFloat().toDouble() else from) + step * 0.5
        for (at in 0 until count) {
            made[at] = Math.min(place.toInt(), size - 1)
            place += step
        }
        return made
    }
}
