package bundler.loader

/** Changes the sample rate from [old] to [new]. */
internal abstract class RateConverter(val old: Int, protected val new: Int) {
    /** The number of samples that [frames] become. */
    fun count(frames: Int): Long = (frames.toLong() * new + old - 1) / old

    /** The number of samples on which the first [length] of the result depend. */
    fun needed(length: Int): Long = length.toLong() * old / new + 1 + margin

    /** How far samples to either side count. */
    protected abstract val margin: Int

    /** Write the first [length] samples of the result of the first [count] of [values]. */
    fun convert(values: FloatArray, count: Int, into: FloatArray, length: Int) {
        for (at in 0 until length) {
            val place = at.toLong() * old
            into[at] = make(values, count, (place / new).toInt(), (place % new).toInt()).toFloat()
        }
    }

    /** The sample that is [phase] / [new] after the sample at [place]. */
    protected abstract fun make(values: FloatArray, count: Int, place: Int, phase: Int): Double
}

/** For equal rates. */
internal class SameRate(rate: Int) : RateConverter(rate, rate) {
    override val margin = 0

    override fun make(values: FloatArray, count: Int, place: Int, phase: Int): Double = values[place].toDouble()
}

/** Between neighbours; after the last sample it goes on as it is. */
internal class LinearConverter(old: Int, new: Int) : RateConverter(old, new) {
    override val margin = 1

    override fun make(values: FloatArray, count: Int, place: Int, phase: Int): Double {
        val share = phase.toDouble() / new
        val left = values[Math.min(place, count - 1)]
        val right = values[Math.min(place + 1, count - 1)]
        return left * (1 - share) + right * share
    }
}

/**
 * The sum of the samples around, weighted by a sinc under a Hann window, with zeros beyond the ends: as
 * `torchaudio.functional.resample` with its defaults. Weights repeat with each phase, and are kept where they are few.
 */
internal class SincConverter(old: Int, new: Int) : RateConverter(old, new) {
    private val cutoff = Math.min(old, new) * ROLL_OFF
    private val reach = Math.ceil(CROSSINGS * old / cutoff).toInt()
    private val taps = 2 * reach + 2
    private val step = divisor(old, new)
    private val kept: Array<DoubleArray?> = arrayOfNulls(if (new.toLong() / step * taps <= MOST_KEPT) new / step else 0)
    private val scratch = DoubleArray(taps)

    override val margin = reach + 1

    override fun make(values: FloatArray, count: Int, place: Int, phase: Int): Double {
        val weights = find(phase)
        var sum = 0.0
        for (tap in Math.max(0, reach - place) until Math.min(taps, count - place + reach)) {
            sum += values[place - reach + tap] * weights[tap]
        }
        return sum
    }

    private fun find(phase: Int): DoubleArray {
        if (kept.isEmpty()) return scratch.also { weigh(phase, it) }
        return kept[phase / step] ?: DoubleArray(taps).also {
            weigh(phase, it)
            kept[phase / step] = it
        }
    }

    private fun weigh(phase: Int, into: DoubleArray) {
        for (tap in 0 until taps) {
            val distance = (tap - reach - phase.toDouble() / new) * (cutoff / old)
            val near = Math.min(Math.max(distance, -CROSSINGS), CROSSINGS)
            val window = Math.cos(near * Math.PI / CROSSINGS / 2)
            into[tap] = sinc(near) * window * window * (cutoff / old)
        }
    }

    private fun sinc(place: Double) = if (place == 0.0) 1.0 else Math.sin(Math.PI * place) / (Math.PI * place)

    private companion object {
        const val CROSSINGS = 6.0
        const val ROLL_OFF = 0.99

        /** 8 MB. */
        const val MOST_KEPT = 1L shl 20

        tailrec fun divisor(one: Int, other: Int): Int = if (other == 0) one else divisor(other, one % other)
    }
}
