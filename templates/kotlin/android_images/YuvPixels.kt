package bundler.loader

import java.nio.ByteBuffer

/** One plane of a camera's picture, with the distances in bytes from row to row and from pixel to pixel. */
internal class YuvPlane(private val memory: ByteBuffer, private val row: Int, private val pixel: Int) {
    fun get(x: Int, y: Int): Int = memory.get(y * row + x * pixel).toInt() and 0xff
}

/** The part of the planes that is the picture. */
internal class YuvArea(val left: Int, val top: Int, val width: Int, val height: Int)

/**
 * Brightness and two planes of colour, which have half its width and height, in the full range of ITU-R BT.601 (as JPEG
 * and Android's cameras have it), turned clockwise by [rotation] degrees.
 */
internal class YuvPixels(private val planes: List<YuvPlane>, private val area: YuvArea, private val rotation: Int) : Pixels {
    private val upright = rotation % 180 == 0
    override val width: Int = if (upright) area.width else area.height
    override val height: Int = if (upright) area.height else area.width

    init {
        if (rotation !in setOf(0, 90, 180, 270)) {
            throw InputException("a picture cannot be turned by $rotation degrees", next = "give 0, 90, 180 or 270")
        }
        requireSizes(width, height)
    }

    override fun read(row: Int, into: IntArray) {
        for (at in 0 until width) {
            into[at] =
                when (rotation) {
                    90 -> convert(row, area.height - 1 - at)
                    180 -> convert(area.width - 1 - at, area.height - 1 - row)
                    270 -> convert(area.width - 1 - row, at)
                    else -> convert(at, row)
                }
        }
    }

    private fun convert(x: Int, y: Int): Int {
        val column = area.left + x
        val line = area.top + y
        val bright = planes[0].get(column, line)
        val blue = planes[1].get(column / 2, line / 2) - 128
        val red = planes[2].get(column / 2, line / 2) - 128
        val made = limit(bright, 91881 * red) shl 16 or (limit(bright, -22554 * blue - 46802 * red) shl 8)
        return 0xff shl 24 or made or limit(bright, 116130 * blue)
    }

    /** The distance from the brightness has 16 bits behind the point. */
    private fun limit(bright: Int, distance: Int) = Math.min(Math.max(bright + (distance + 0x8000 shr 16), 0), 255)
}
