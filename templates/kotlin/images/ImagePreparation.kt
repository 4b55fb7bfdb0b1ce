package bundler.loader

/**
 * Makes a model's input of a picture as its declared preprocessing says: the same bytes as the preparation that its
 * accuracy was checked with. Its memory is kept for the next picture; calls from several threads wait for each other.
 */
internal class ImagePreparation(data: JsonObject, inputs: List<Port>) {
    private val record = ImageRecord(data)
    private val colours = ColourRows(record.channels, record.background)
    private val scaler = record.makeScaler()
    private val table = PixelTable(record)
    private val canvas = Canvas(record.width, record.height, record.channels)

    /** The inputs that are the same for every picture. */
    val constants = Constants(record.constants, inputs)

    constructor(model: LoadedModel) : this(model.preprocessing(), model.inputs)

    /** A tensor for [fill]. */
    fun allocate(): Tensor = Tensor.of(record.type, *record.shape)

    /** Write the prepared picture into [tensor]. Throws [InputException] where that is none of [allocate]'s. */
    @Synchronized
    fun fill(picture: Pixels, tensor: Tensor?) {
        requireSizes(picture.width, picture.height)
        val target = requireTensor(record.input, tensor, record.type, record.shape)
        if (record.resize == "pad") canvas.fill(IntArray(record.channels).also(colours::write))
        scaler.scale(picture, colours, record.place(picture.width, picture.height), canvas)
        table.write(canvas.values, target)
    }
}

/** What each of the 256 values of a channel becomes: scaled and normalised in single precision, as the input's type. */
internal class PixelTable(private val record: ImageRecord) {
    private val bits = LongArray(record.channels * 256) { at -> convert(at shr 8, at and 0xff) }

    private fun convert(channel: Int, value: Int): Long {
        val number = (value.toFloat() * record.scale - record.mean[channel]) / record.std[channel]
        val range = Encoding.rangeOf(record.type) ?: return Encoding.encode(record.type, number.toDouble())
        return Encoding.encode(record.type, Math.rint(number.toDouble()).coerceIn(range))
    }

    /** The pixels as elements, with channels and axes in the model's order. */
    fun write(pixels: ByteArray, tensor: Tensor) {
        val writer = ElementWriter(tensor)
        val channels = record.channels
        val count = pixels.size / channels
        for (channel in 0 until channels) {
            val source = if (record.reversed) channels - 1 - channel else channel
            val start = if (record.planar) channel * count else channel
            val step = if (record.planar) 1 else channels
            for (at in 0 until count) {
                val value = pixels[at * channels + source].toInt() and 0xff
                writer.put(start + at * step, bits[channel shl 8 or value])
            }
        }
    }
}
