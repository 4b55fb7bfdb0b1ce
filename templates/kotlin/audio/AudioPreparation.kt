package bundler.loader

/** What becomes of a recording before the model hears it, as `runtime.json` has it. */
internal class AudioRecord(data: JsonObject) {
    val input = data.text("input")
    val type = ElementType.of(data.text("dtype"))
    val rank = data.long("rank").toInt()
    val rate = data.long("sample_rate").toInt()
    val first = data.text("mono") == "first"
    val resample = data.text("resample")
    val length = data.longOrNull("length")?.toInt()
    val normalise = data.text("normalise")
    val constants = data.child("constants")
}

/**
 * Makes a model's input of a recording as its declared preprocessing says. Its memory is kept for the next recording;
 * calls from several threads wait for each other.
 */
internal class AudioPreparation(data: JsonObject, inputs: List<Port>) {
    private val record = AudioRecord(data)
    private var converter: RateConverter = SameRate(record.rate)
    private var values = FloatArray(0)
    private var made = FloatArray(0)

    /** The inputs that are the same for every recording. */
    val constants = Constants(record.constants, inputs)

    constructor(model: LoadedModel) : this(model.preprocessing(), model.inputs)

    /** A tensor for [fill] with this recording. */
    @Synchronized
    fun allocate(sound: Sound): Tensor = Tensor.of(record.type, *shape(record.length ?: measure(sound)))

    /** Write the prepared recording into [tensor]. Throws [InputException] where that does not fit. */
    @Synchronized
    fun fill(sound: Sound, tensor: Tensor?) {
        val count = measure(sound)
        val length = record.length ?: count
        val target = requireTensor(record.input, tensor, record.type, shape(length))
        val needed = Math.min(sound.frames.toLong(), choose(sound.rate).needed(count)).toInt()
        if (values.size < needed) values = FloatArray(needed)
        for (frame in 0 until needed) values[frame] = if (record.first) sound.first(frame) else sound.mean(frame)
        if (made.size < count) made = FloatArray(count)
        converter.convert(values, needed, made, count)
        normalise(count)
        val writer = ElementWriter(target)
        for (at in 0 until length) writer.put(at, Encoding.encode(record.type, if (at < count) made[at].toDouble() else 0.0))
    }

    private fun shape(length: Int) = LongArray(record.rank) { axis -> if (axis == record.rank - 1) length.toLong() else 1 }

    /** The samples that a recording becomes, without the zeros at its end. */
    private fun measure(sound: Sound): Int {
        val whole = choose(sound.rate).count(sound.frames)
        val count = Math.min(whole, (record.length ?: Int.MAX_VALUE).toLong())
        if (count > MAX_SAMPLES) throw InputException("the recording becomes $count samples, more than $MAX_SAMPLES", next = "give a part of it")
        return count.toInt()
    }

    private fun choose(rate: Int): RateConverter {
        if (rate == converter.old) return converter
        val made =
            when {
                rate == record.rate -> SameRate(rate)
                record.resample == "sinc" -> SincConverter(rate, record.rate)
                record.resample == "linear" -> LinearConverter(rate, record.rate)
                else -> throw InputException("the recording has $rate Hz, and the model requires ${record.rate} Hz", next = "record it at that rate, or convert it")
            }
        return made.also { converter = it }
    }

    private fun normalise(count: Int) {
        if (record.normalise == "peak") {
            var peak = 0f
            for (at in 0 until count) peak = Math.max(peak, Math.abs(made[at]))
            if (peak != 0f) for (at in 0 until count) made[at] /= peak
        }
        if (record.normalise == "standard") standardise(count)
    }

    private fun standardise(count: Int) {
        var sum = 0.0
        for (at in 0 until count) sum += made[at]
        val mean = sum / count
        var squares = 0.0
        for (at in 0 until count) squares += (made[at] - mean) * (made[at] - mean)
        val deviation = Math.sqrt(squares / count)
        for (at in 0 until count) made[at] = ((made[at] - mean) / (if (deviation != 0.0) deviation else 1.0)).toFloat()
    }

    private companion object {
        /** Over an hour and a half at 16 kHz. */
        const val MAX_SAMPLES = 100_000_000
    }
}
