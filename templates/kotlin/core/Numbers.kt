package bundler.loader

/** What tensors hold as numbers, and sums of them in NumPy's own order, so that figures are those of Python. */
internal object Numbers {
    private const val BLOCK = 128
    private const val LANES = 8

    /** Pairwise (Higham, "The accuracy of floating point summation", 1993): the error grows with the count's logarithm. */
    fun sum(values: DoubleArray, from: Int = 0, count: Int = values.size): Double {
        if (count > BLOCK) {
            val half = count / 2
            val first = half - half % LANES
            return sum(values, from, first) + sum(values, from + first, count - first)
        }
        val lanes = DoubleArray(LANES)
        val whole = count - count % LANES
        for (at in 0 until whole) lanes[at % LANES] += values[from + at]
        var total = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
        for (at in whole until count) total += values[from + at]
        return total
    }

    /** The elements as doubles; of text none. */
    fun asDoubles(tensor: Tensor): DoubleArray {
        val bytes = tensor.bytes()
        return when (tensor.type) {
            ElementType.FLOAT32 -> bytes.asFloatBuffer().let { items -> DoubleArray(tensor.size) { items.get(it).toDouble() } }
            ElementType.FLOAT64 -> bytes.asDoubleBuffer().let { items -> DoubleArray(tensor.size) { items.get(it) } }
            ElementType.FLOAT16 -> bytes.asShortBuffer().let { items -> DoubleArray(tensor.size) { decodeHalf(items.get(it)) } }
            ElementType.BFLOAT16 -> bytes.asShortBuffer().let { items -> DoubleArray(tensor.size) { decodeBrain(items.get(it)) } }
            ElementType.INT16 -> bytes.asShortBuffer().let { items -> DoubleArray(tensor.size) { items.get(it).toDouble() } }
            ElementType.INT32 -> bytes.asIntBuffer().let { items -> DoubleArray(tensor.size) { items.get(it).toDouble() } }
            ElementType.INT64 -> bytes.asLongBuffer().let { items -> DoubleArray(tensor.size) { items.get(it).toDouble() } }
            ElementType.INT8 -> DoubleArray(tensor.size) { bytes.get(it).toDouble() }
            ElementType.UINT8, ElementType.BOOL -> DoubleArray(tensor.size) { (bytes.get(it).toInt() and 0xff).toDouble() }
            ElementType.STRING -> DoubleArray(0)
        }
    }

    /** How many elements are equal. */
    fun countEqual(one: Tensor, other: Tensor): Int {
        if (one.type == ElementType.STRING) {
            val (first, second) = listOf(one.strings(), other.strings())
            return first.indices.count { first[it] == second[it] }
        }
        val (first, second) = listOf(one.bytes(), other.bytes())
        val width = one.type.bytes
        return (0 until one.size).count { item -> (0 until width).all { first.get(item * width + it) == second.get(item * width + it) } }
    }

    /** A number of 16 bits: 1 of sign, 5 of exponent, 10 of fraction. */
    fun decodeHalf(value: Short): Double {
        val bits = value.toInt()
        val sign = if (bits and 0x8000 != 0) -1.0 else 1.0
        val exponent = bits shr 10 and 0x1f
        val fraction = bits and 0x3ff
        return when (exponent) {
            0x1f -> if (fraction != 0) Double.NaN else sign * Double.POSITIVE_INFINITY
            0 -> sign * Math.scalb(fraction.toDouble(), -24)
            else -> sign * Math.scalb(1.0 + fraction / 1024.0, exponent - 15)
        }
    }

    /** The upper half of a float of 32 bits. */
    private fun decodeBrain(value: Short): Double = java.lang.Float.intBitsToFloat(value.toInt() shl 16).toDouble()
}
