package bundler.loader

import kotlin.math.abs
import kotlin.math.floor
import kotlin.math.log10
import kotlin.math.max
import kotlin.math.min
import kotlin.math.sqrt

/** The figures of one output's recorded values, from the golden set's index. */
internal class Reference(data: JsonObject?) {
    val signal = data?.doubleOrNull("signal")
    val signals = data?.takeIf { it.has("signals") }?.list("signals")?.map { (it as Number).toDouble() }.orEmpty()
    val quietPeak = data?.doubleOrNull("quiet_peak") ?: 0.0
    val quantity = data?.raw("quantity") == true
    val unjudged = data?.textOrNull("unjudged") ?: ""
}

/**
 * How far one output is from its reference over all samples: the figures of Python bundles. Errors are in the output's
 * own unit.
 */
internal class OutputFigures(val name: String, val reference: Reference) {
    var equal = true
        private set
    var mismatch: String? = null
        private set
    private var maxAbsolute = 0.0
    private var maxRelative = 0.0
    private var excess = 0
    private var sumAbsolute = 0.0
    private var count = 0L
    private val noises = ArrayList<Double>()
    private var power = 0.0
    private var energy = 0.0
    private var dot = 0.0
    private var sameTop = 0L
    private var tops = 0L
    private var exact = 0L
    private var exactAgreed = 0L

    /** Add one sample's value; [where] names the sample in a mismatch. */
    fun add(actual: Tensor, expected: Tensor, tolerance: Tolerance, where: String) {
        noises.add(0.0)
        addTensor(actual, expected, tolerance)?.let { refuse("$where: $it") }
    }

    /** Record the first reason why this output could not be compared. */
    fun refuse(why: String) {
        equal = false
        mismatch = mismatch ?: why
    }

    /** Why this output is out of tolerance; null where it is within. An empty tolerance checks type and shape. */
    fun findFault(tolerance: Tolerance): String? =
        when {
            !tolerance.judged -> null
            mismatch != null || tolerance.isEmpty -> mismatch
            excess > 0 -> "$excess of $count elements are out of tolerance, the largest error is ${show(maxAbsolute)}"
            else -> findDisagreement(tolerance) ?: if (equal) null else findNoise(tolerance)
        }

    /** All figures by name; null without a signal, a norm, rows of scores, and where nothing was [judged]. */
    fun toMap(judged: Boolean): Map<String, Any?> {
        val figures = linkedMapOf<String, Any?>(
            "equal" to equal,
            "max_absolute" to maxAbsolute,
            "mean_absolute" to if (count > 0) sumAbsolute / count else 0.0,
            "max_relative" to maxRelative,
            "cosine" to cosine,
            "sqnr_db" to sqnr,
            "low_sqnr_db" to lowSqnr,
            "worst_sqnr_db" to worstSqnr,
            "top1_agreement" to top1,
            "agreement" to agreement,
        )
        val shown = if (judged) figures else figures.mapValues { null }
        return linkedMapOf<String, Any?>("name" to name) + shown + ("mismatch" to mismatch)
    }

    private val cosine get() = (sqrt(power) * sqrt(energy)).let { if (it == 0.0 || it.isNaN()) null else dot / it }
    private val sqnr get() = decibels(reference.signal ?: 0.0, Numbers.sum(noises.toDoubleArray()))
    private val worstSqnr get() = ratios().filterNotNull().minOrNull()
    private val top1 get() = if (tops > 0) sameTop.toDouble() / tops else null
    private val agreement get() = if (exact > 0) exactAgreed.toDouble() / exact else null

    /** What all samples reach but a tenth, and at least one of several. */
    private val lowSqnr: Double?
        get() {
            val ordered = ratios().map { it ?: Double.POSITIVE_INFINITY }.sorted()
            if (ordered.isEmpty()) return null
            return ordered[min(ordered.size - 1, max(1, floor(LOW * ordered.size).toInt()))].takeIf { it.isFinite() }
        }

    private fun ratios() = noises.zip(reference.signals).map { (noise, signal) -> decibels(signal, noise) }

    private fun findDisagreement(tolerance: Tolerance): String? {
        val found = agreement ?: return null
        val least = tolerance["agreement"]
        if (found >= (least ?: 1.0)) return null
        val promise = if (least == null) "" else ", at least a share of $least must be equal"
        return "${exact - exactAgreed} of $exact values differ$promise"
    }

    private fun findNoise(tolerance: Tolerance): String? {
        val rounding = isRounding(tolerance)
        val ratios = listOf("sqnr_db" to sqnr, "low_sqnr_db" to lowSqnr, "worst_sqnr_db" to worstSqnr, "cosine" to cosine)
        for ((name, found) in (if (rounding) emptyList() else ratios) + ("top1_agreement" to top1)) {
            val least = tolerance[name]
            if (found != null && least != null && found < least) return "$name ${show(found)} (min ${show(least)})"
        }
        val isUnmeasured = tolerance["sqnr_db"] != null && reference.signal == null && maxAbsolute > 0
        if (rounding || !isUnmeasured) return null
        return "its largest error is ${show(maxAbsolute)}, and the reference has no signal to compare it with"
    }

    private fun isRounding(tolerance: Tolerance): Boolean {
        val peak = reference.quietPeak
        return maxAbsolute <= min(max(NEGLIGIBLE, LAST_STEP * peak), allowed(tolerance, peak))
    }

    private fun addTensor(actual: Tensor, expected: Tensor, tolerance: Tolerance): String? {
        if (!actual.sizes().contentEquals(expected.sizes())) {
            return "shape [${actual.sizes().joinToString(", ")}] instead of [${expected.sizes().joinToString(", ")}]"
        }
        if (actual.type != expected.type) return "type ${actual.type.key} instead of ${expected.type.key}"
        if (expected.type !in FLOATS) {
            if (reference.quantity) addFinite(Numbers.asDoubles(actual), Numbers.asDoubles(expected), tolerance)
            return addExact(actual, expected)
        }
        val wanted = Numbers.asDoubles(expected)
        val found = if (Numbers.countEqual(actual, expected) == expected.size) wanted else Numbers.asDoubles(actual)
        addTop(found, wanted, expected.sizes())
        return addNumbers(found, wanted, tolerance)
    }

    private fun addExact(actual: Tensor, expected: Tensor): String? {
        val agreed = Numbers.countEqual(actual, expected)
        equal = equal && agreed == expected.size
        exact += expected.size
        exactAgreed += agreed
        return null
    }

    private fun addNumbers(actual: DoubleArray, expected: DoubleArray, tolerance: Tolerance): String? {
        if (expected.indices.any { expected[it].isNaN() != actual[it].isNaN() }) return "NaN is at other positions"
        val differs = expected.indices.any { if (expected[it].isFinite()) !actual[it].isFinite() else !isSame(expected[it], actual[it]) }
        if (differs) return "infinity is at other positions"
        val finite = expected.indices.filter { expected[it].isFinite() }
        if (finite.size == expected.size) {
            addFinite(actual, expected, tolerance)
        } else {
            addFinite(actual.sliceArray(finite), expected.sliceArray(finite), tolerance)
        }
        return null
    }

    private fun isSame(one: Double, other: Double) = one == other || (one.isNaN() && other.isNaN())

    private fun addFinite(actual: DoubleArray, expected: DoubleArray, tolerance: Tolerance) {
        if (expected.isEmpty()) return
        val error = DoubleArray(expected.size) { abs(actual[it] - expected[it]) }
        for (at in error.indices) {
            val size = abs(expected[at])
            if (error[at] != 0.0) equal = false
            if (error[at] > allowed(tolerance, size)) excess++
            maxAbsolute = max(maxAbsolute, error[at])
            if (size > 0) maxRelative = max(maxRelative, error[at] / size)
        }
        count += expected.size
        sumAbsolute += Numbers.sum(error)
        noises[noises.size - 1] += Numbers.sum(DoubleArray(error.size) { error[it] * error[it] })
        power += Numbers.sum(DoubleArray(error.size) { expected[it] * expected[it] })
        energy += Numbers.sum(DoubleArray(error.size) { actual[it] * actual[it] })
        dot += Numbers.sum(DoubleArray(error.size) { actual[it] * expected[it] })
    }

    /** Rows of at least two numbers along the last axis; scores that differ by less than rounding tie. */
    private fun addTop(actual: DoubleArray, expected: DoubleArray, shape: LongArray) {
        val length = if (shape.size < 2) 0 else shape.last().toInt()
        if (length !in 2..MAX_CLASSES) return
        for (start in expected.indices step length) {
            tops++
            val best = expected[start + findTop(expected, start, length)]
            val found = expected[start + findTop(actual, start, length)]
            val near = if (best.isFinite()) TIE * abs(best) else 0.0
            if (best.isNaN() || found >= best - near) sameTop++
        }
    }

    private fun findTop(values: DoubleArray, from: Int, count: Int): Int {
        var top = 0
        var best = Double.NEGATIVE_INFINITY
        for (place in 0 until count) {
            if (values[from + place] > best) {
                best = values[from + place]
                top = place
            }
        }
        return top
    }

    private fun allowed(tolerance: Tolerance, size: Double): Double {
        val absolute = tolerance["absolute"] ?: return Double.POSITIVE_INFINITY
        val relative = tolerance["relative"] ?: return Double.POSITIVE_INFINITY
        return absolute + relative * size
    }

    private fun decibels(signal: Double, noise: Double): Double? =
        if (signal == 0.0 || noise == 0.0) null else 10 * (log10(signal) - log10(noise))

    private companion object {
        /** Errors up to here are rounding: for an output that small, ratios say nothing. */
        const val NEGLIGIBLE = 1e-6

        /** The last step of a 32-bit float, as a share of the greatest magnitude. */
        const val LAST_STEP = 1.0 / (1 shl 23)

        /** The share of samples (at least one of several) that may stay below `low_sqnr_db`. */
        const val LOW = 0.1

        /** Scores that differ by less, relative to their magnitude, tie. */
        const val TIE = 1e-6

        /** Up to this length of the last axis, rows are compared by the place of their maximum. */
        const val MAX_CLASSES = 65_536
        val FLOATS = setOf(ElementType.FLOAT16, ElementType.BFLOAT16, ElementType.FLOAT32, ElementType.FLOAT64)

        fun show(value: Double): String = String.format(java.util.Locale.ROOT, "%.4g", value)
    }
}
