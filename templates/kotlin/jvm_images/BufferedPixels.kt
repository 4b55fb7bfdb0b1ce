package bundler.loader

import java.awt.color.ColorSpace
import java.awt.image.BufferedImage
import java.awt.image.ComponentColorModel
import java.awt.image.DataBuffer

/**
 * A picture of Java's. Samples of 8 and 16 bits are taken as they are in the file, of which 16 lose their lower half;
 * Java's own conversion would make grey ones lighter. Other pictures are converted by Java.
 */
internal class BufferedPixels(private val image: BufferedImage) : Pixels {
    override val width: Int = image.width
    override val height: Int = image.height
    private val plain = isPlain()
    private val bands = image.raster.numBands
    private val shift = if (image.raster.transferType == DataBuffer.TYPE_USHORT) 8 else 0
    private var samples = IntArray(0)

    override fun read(row: Int, into: IntArray) {
        if (!plain) {
            image.getRGB(0, row, width, 1, into, 0, width)
            return
        }
        samples = image.raster.getPixels(0, row, width, 1, samples.takeIf { it.isNotEmpty() })
        for (at in 0 until width) into[at] = join(at * bands)
    }

    private fun join(at: Int): Int {
        val colours = if (bands < 3) 1 else 3
        val alpha = if (bands > colours) samples[at + colours] shr shift else 0xff
        val red = samples[at] shr shift
        val green = if (colours == 1) red else samples[at + 1] shr shift
        val blue = if (colours == 1) red else samples[at + 2] shr shift
        return alpha shl 24 or (red shl 16) or (green shl 8) or blue
    }

    private fun isPlain(): Boolean {
        val model = image.colorModel as? ComponentColorModel ?: return false
        val colours = model.colorSpace.type == ColorSpace.TYPE_GRAY || model.colorSpace.isCS_sRGB
        val whole = image.raster.transferType == DataBuffer.TYPE_BYTE || image.raster.transferType == DataBuffer.TYPE_USHORT
        return colours && whole && !model.isAlphaPremultiplied && model.componentSize.all { it == 8 || it == 16 }
    }
}
