package bundler.loader

import java.nio.ByteBuffer

/** The bits of elements, from numbers. */
internal object Encoding {
    /** Rounded half to even where the type is a narrower floating-point one; other types take whole numbers. */
    fun encode(type: ElementType, value: Double): Long =
        when (type) {
            ElementType.FLOAT32 -> value.toFloat().toRawBits().toLong()
            ElementType.FLOAT64 -> value.toRawBits()
            ElementType.FLOAT16 -> encodeHalf(value).toLong()
            ElementType.BFLOAT16 -> encodeBrain(value.toFloat()).toLong()
            ElementType.BOOL -> if (value != 0.0) 1 else 0
            else -> value.toLong()
        }

    /** The whole numbers that a type holds; null for one that holds fractions. */
    fun rangeOf(type: ElementType): ClosedFloatingPointRange<Double>? =
        when (type) {
            ElementType.INT8 -> -128.0..127.0
            ElementType.UINT8 -> 0.0..255.0
            ElementType.INT16 -> -32768.0..32767.0
            ElementType.INT32 -> -2147483648.0..2147483647.0
            ElementType.INT64 -> Long.MIN_VALUE.toDouble()..Long.MAX_VALUE.toDouble()
            else -> null
        }

    /** 1 bit of sign, 5 of exponent, 10 of fraction. */
    fun encodeHalf(value: Double): Int {
        val sign = if (value.toRawBits() < 0) 0x8000 else 0
        val size = Math.abs(value)
        val exponent = Math.getExponent(size)
        return sign or
            when {
                size.isNaN() -> 0x7e00
                size >= 65520.0 -> 0x7c00
                exponent < -14 -> Math.rint(Math.scalb(size, 24)).toInt()
                // A fraction that is rounded up to the next power of two carries over into the exponent.
                else -> (exponent + 14 shl 10) + Math.rint(Math.scalb(size, 10 - exponent)).toInt()
            }
    }

    /** The upper half of a float of 32 bits. */
    private fun encodeBrain(value: Float): Int {
        val bits = value.toRawBits()
        return if (value.isNaN()) 0x7fc0 else bits + 0x7fff + (bits ushr 16 and 1) ushr 16
    }
}

/** Writes elements into a tensor's memory. */
internal class ElementWriter(tensor: Tensor) {
    private val memory: ByteBuffer = tensor.bytes()
    private val width = tensor.type.bytes

    fun put(index: Int, bits: Long) {
        when (width) {
            1 -> memory.put(index, bits.toByte())
            2 -> memory.putShort(index * 2, bits.toShort())
            4 -> memory.putInt(index * 4, bits.toInt())
            else -> memory.putLong(index * 8, bits)
        }
    }
}

/** Throws [InputException] where a prepared input is not there, or is not what its preparation gives. */
internal fun requireTensor(name: String, tensor: Tensor?, type: ElementType, shape: LongArray): Tensor {
    val wanted = "${type.key}[${shape.joinToString(", ")}]"
    if (tensor == null) throw InputException("input '${name.take(80)}' is missing", next = "give a tensor of $wanted")
    if (tensor.type != type || !tensor.sizes().contentEquals(shape)) {
        throw InputException("input '${name.take(80)}' is $tensor, and it is prepared as $wanted", next = "make it with these sizes")
    }
    return tensor
}
