package bundler.calls

import java.nio.ByteBuffer
import kotlin.math.abs

/** By floating-point type, the rounding that two runs may differ by: of each value, and a tenth of it of the largest. */
private val ROUNDING = mapOf("FLOAT32" to 1e-4, "FLOAT64" to 1e-4, "FLOAT16" to 2e-3, "BFLOAT16" to 2e-2)

internal fun readBytes(tensor: Any): ByteBuffer = tensor.call("bytes") as ByteBuffer

/** Whether two tensors are equal, but for the rounding of threads that share the work otherwise. */
internal fun isAlike(found: Any, wanted: Any): Boolean {
    val type = wanted.call("getType").toString()
    if (found.call("getType").toString() != type || !readShape(found).contentEquals(readShape(wanted))) return false
    if (type == "STRING") return readTexts(found).contentEquals(readTexts(wanted))
    val rounding = ROUNDING[type] ?: return readBytes(found) == readBytes(wanted)
    val values = decode(type, readBytes(wanted))
    val others = decode(type, readBytes(found))
    val least = rounding / 10 * (values.filter { it.isFinite() }.maxOfOrNull { abs(it) } ?: 0.0)
    return values.indices.all { isNear(others[it], values[it], least + rounding * abs(values[it])) }
}

private fun isNear(found: Double, wanted: Double, allowed: Double) =
    found == wanted || (found.isNaN() && wanted.isNaN()) || (wanted.isFinite() && abs(found - wanted) <= allowed)

internal fun readShape(tensor: Any) = tensor.call("getShape") as LongArray

internal fun readTexts(tensor: Any) = tensor.call("strings") as Array<*>

private fun decode(type: String, bytes: ByteBuffer): DoubleArray =
    when (type) {
        "FLOAT32" -> bytes.asFloatBuffer().let { items -> DoubleArray(items.remaining()) { items.get(it).toDouble() } }
        "FLOAT64" -> bytes.asDoubleBuffer().let { items -> DoubleArray(items.remaining()) { items.get(it) } }
        "FLOAT16" -> bytes.asShortBuffer().let { items -> DoubleArray(items.remaining()) { decodeHalf(items.get(it).toInt()) } }
        else -> bytes.asShortBuffer().let { items -> DoubleArray(items.remaining()) { Float.fromBits(items.get(it).toInt() shl 16).toDouble() } }
    }

/** A number of 16 bits: 1 of sign, 5 of exponent, 10 of fraction. */
private fun decodeHalf(bits: Int): Double {
    val fraction = (bits and 0x3ff).toDouble()
    val size =
        when (val exponent = bits shr 10 and 0x1f) {
            0x1f -> if (fraction == 0.0) Double.POSITIVE_INFINITY else Double.NaN
            0 -> Math.scalb(fraction, -24)
            else -> Math.scalb(fraction + 1024, exponent - 25)
        }
    return if (bits and 0x8000 != 0) -size else size
}
