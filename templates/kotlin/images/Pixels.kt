package bundler.loader

import java.nio.IntBuffer

/** A picture, read row by row, so that nothing of its whole size is made from it. */
internal interface Pixels {
    val width: Int
    val height: Int

    /** The pixels of [row], each as `0xAARRGGBB` without premultiplied alpha, into the first [width] elements. */
    fun read(row: Int, into: IntArray)
}

/** Pixels in an array, row after row. Throws [InputException] where it has more or fewer than the sizes say. */
internal class ArrayPixels(private val values: IntArray, override val width: Int, override val height: Int) : Pixels {
    init {
        requirePixels(values.size, width, height)
    }

    override fun read(row: Int, into: IntArray) {
        values.copyInto(into, 0, row * width, (row + 1) * width)
    }
}

/** As [ArrayPixels], from the position of a buffer to its limit; neither is moved. */
internal class BufferPixels(values: IntBuffer, override val width: Int, override val height: Int) : Pixels {
    private val values = values.duplicate()
    private val start = values.position()

    init {
        requirePixels(values.remaining(), width, height)
    }

    override fun read(row: Int, into: IntArray) {
        val first = start + row * width
        for (at in 0 until width) into[at] = values.get(first + at)
    }
}

private fun requirePixels(given: Int, width: Int, height: Int) {
    requireSizes(width, height)
    val needed = width.toLong() * height
    if (given.toLong() != needed) {
        throw InputException("$given pixels were given, and a picture of $width x $height has $needed", next = "give one integer for each pixel")
    }
}

/** Throws [InputException] for a picture without pixels. */
internal fun requireSizes(width: Int, height: Int) {
    if (width < 1 || height < 1) throw InputException("a picture of $width x $height has no pixels", next = "give one of at least 1 x 1")
}
