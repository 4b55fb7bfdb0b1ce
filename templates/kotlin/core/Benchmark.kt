package bundler.loader

/**
 * The latency of one model on this machine.
 *
 * @property model the name of the model
 * @property variant the variant that ran
 * @property first the time of the first call in milliseconds, in which the runtime allocates its memory
 * @property milliseconds the time of each later call, in the order in which they ran
 */
public class Benchmark internal constructor(
    public val model: String,
    public val variant: String,
    public val first: Double,
    public val milliseconds: List<Double>,
) {
    private val ordered = milliseconds.sorted()

    /** The time that half of the calls stayed below. */
    public val median: Double get() = quantile(0.5)

    /** The time that a share of the calls, 0 to 1, stayed below. */
    public fun quantile(share: Double): Double = ordered[(share * (ordered.size - 1)).toInt()]

    override fun toString(): String =
        String.format(
            java.util.Locale.ROOT,
            "%s, variant %s: median %.3f ms, p10 %.3f, p90 %.3f, of %d calls",
            model, variant, median, quantile(0.1), quantile(0.9), ordered.size,
        )

    internal companion object {
        private const val WARM_UP = 5
        private const val MAX_RUNS = 1000

        fun measure(model: String, variant: String, seconds: Double, call: () -> Unit): Benchmark {
            val first = time(call)
            repeat(WARM_UP) { call() }
            val times = ArrayList<Double>()
            val end = System.nanoTime() + (seconds * 1e9).toLong()
            do {
                times.add(time(call))
            } while (System.nanoTime() < end && times.size < MAX_RUNS)
            return Benchmark(model, variant, first, times)
        }

        private inline fun time(call: () -> Unit): Double {
            val start = System.nanoTime()
            call()
            return (System.nanoTime() - start) / 1e6
        }
    }
}
