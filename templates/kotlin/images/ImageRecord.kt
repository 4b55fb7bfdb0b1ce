package bundler.loader

/** What becomes of a picture before the model sees it, as `runtime.json` has it. */
internal class ImageRecord(data: JsonObject) {
    val input = data.text("input")
    val type = ElementType.of(data.text("dtype"))
    val height = (data.list("size")[0] as Long).toInt()
    val width = (data.list("size")[1] as Long).toInt()
    val shape = data.list("shape").map { it as Long }.toLongArray()
    val resize = data.text("resize")
    val filter = ImageFilter.of(data.text("filter"))
    val antialias = data.flag("antialias")
    val cropFraction = data.double("crop_fraction")
    val background = data.list("background").map { (it as Long).toInt() }.toIntArray()
    val channels = if (data.text("colour") == "L") 1 else 3
    val reversed = data.text("colour") == "BGR"
    val planar = data.text("layout") == "NCHW"
    val scale = data.double("scale").toFloat()
    val mean = floats(data, "mean")
    val std = floats(data, "std")
    val constants = data.child("constants")

    private fun floats(data: JsonObject, key: String) = data.list(key).map { (it as Number).toFloat() }
}

/** How pixels are interpolated, as Pillow's filters of these names do; [reach] is in pixels, to either side. */
internal enum class ImageFilter(val reach: Double) {
    NEAREST(0.5),
    BILINEAR(1.0),
    BICUBIC(2.0),
    ;

    /** The weight of a pixel at a distance. */
    fun weigh(distance: Double): Double {
        val x = Math.abs(distance)
        return when {
            x >= reach -> 0.0
            this == BILINEAR -> 1.0 - x
            x < 1.0 -> ((SHARPNESS + 2.0) * x - (SHARPNESS + 3.0)) * x * x + 1
            else -> (((x - 5) * x + 8) * x - 4) * SHARPNESS
        }
    }

    companion object {
        /** Of the cubic: Pillow's. */
        private const val SHARPNESS = -0.5

        fun of(name: String): ImageFilter = entries.first { it.name.lowercase() == name }
    }
}

/** The part of a picture that is scaled, in its pixels, and where on the canvas it goes. */
internal class Placement(val left: Double, val top: Double, val right: Double, val bottom: Double, val area: Area)

/** A part of the canvas. */
internal class Area(val left: Int, val top: Int, val width: Int, val height: Int)

/** Where a picture of these sizes goes. */
internal fun ImageRecord.place(across: Int, down: Int): Placement {
    val whole = Area(0, 0, width, height)
    return when (resize) {
        "crop" -> centre(across, down, whole)
        "pad" -> Placement(0.0, 0.0, across.toDouble(), down.toDouble(), fit(across, down))
        else -> Placement(0.0, 0.0, across.toDouble(), down.toDouble(), whole)
    }
}

/** The largest centred part with the canvas' aspect ratio, its sides times the fraction. */
private fun ImageRecord.centre(across: Int, down: Int, whole: Area): Placement {
    val ratio = width.toDouble() / height
    val wide = Math.min(across.toDouble(), down * ratio) * cropFraction
    val high = Math.min(down.toDouble(), across / ratio) * cropFraction
    val (left, top) = (across - wide) / 2 to (down - high) / 2
    val (right, bottom) = Math.min(left + wide, across.toDouble()) to Math.min(top + high, down.toDouble())
    return Placement(Math.max(left, 0.0), Math.max(top, 0.0), right, bottom, whole)
}

private fun ImageRecord.fit(across: Int, down: Int): Area {
    val factor = Math.min(width.toDouble() / across, height.toDouble() / down)
    val wide = Math.rint(across * factor).toInt().coerceIn(1, width)
    val high = Math.rint(down * factor).toInt().coerceIn(1, height)
    return Area((width - wide) / 2, (height - high) / 2, wide, high)
}
