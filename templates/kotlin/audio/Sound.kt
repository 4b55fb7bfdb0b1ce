package bundler.loader

import java.nio.FloatBuffer
import java.nio.ShortBuffer

/** A recording: frames one after the other, each with a sample of every channel. */
internal abstract class Sound(count: Int, val rate: Int, private val channels: Int) {
    /** The samples of a channel. */
    val frames: Int

    init {
        if (channels < 1) throw InputException("a recording has no $channels channels", next = "give at least 1")
        if (rate !in 1..MAX_RATE) throw InputException("$rate is not a sample rate", next = "give the samples per second, from 1 to $MAX_RATE")
        if (count < 1) throw InputException("the recording has no samples")
        if (count % channels != 0) {
            throw InputException("$count samples are no whole frames of $channels channels", next = "give a sample of each channel for every frame")
        }
        frames = count / channels
    }

    /** A number from -1 to 1. */
    protected abstract fun get(index: Int): Float

    /** The first channel at a frame. */
    fun first(frame: Int): Float = get(frame * channels)

    /** The mean of all channels at a frame. */
    fun mean(frame: Int): Float {
        var sum = 0f
        for (channel in 0 until channels) sum += get(frame * channels + channel)
        return sum / channels
    }

    private companion object {
        /** More than any converter has; the memory for weights grows with it. */
        const val MAX_RATE = 1_000_000
    }
}

/** Whole numbers of 16 bits, from the position of a buffer to its limit; neither is moved. */
internal class ShortSound(private val samples: ShortBuffer, rate: Int, channels: Int) : Sound(samples.remaining(), rate, channels) {
    private val start = samples.position()

    constructor(samples: ShortArray, rate: Int, channels: Int) : this(ShortBuffer.wrap(samples), rate, channels)

    override fun get(index: Int): Float = samples.get(start + index) / 32768f
}

/** Numbers from -1 to 1, from the position of a buffer to its limit; neither is moved. */
internal class FloatSound(private val samples: FloatBuffer, rate: Int, channels: Int) : Sound(samples.remaining(), rate, channels) {
    private val start = samples.position()

    constructor(samples: FloatArray, rate: Int, channels: Int) : this(FloatBuffer.wrap(samples), rate, channels)

    override fun get(index: Int): Float = samples.get(start + index)
}
