package bundler.loader

private const val BITS = 22
private const val HALF = 1 shl (BITS - 1)

/** For each place of an axis: the first element that it is made of, how many there are, and their weights. */
internal class Weights(private val size: Int, private val from: Float, private val to: Float, private val count: Int, filter: ImageFilter) {
    val starts = IntArray(count)
    val counts = IntArray(count)
    private val scale = (to - from).toDouble() / count
    private val spread = Math.max(scale, 1.0)
    private val reach = filter.reach * spread

    /** The number of elements between the weights of neighbours. */
    val stride = Math.ceil(reach).toInt() * 2 + 1

    /** Numbers of [BITS] bits behind the point. */
    val values = IntArray(Math.multiplyExact(count, stride))

    init {
        val exact = DoubleArray(stride)
        for (place in 0 until count) weigh(place, filter, exact)
    }

    private fun weigh(place: Int, filter: ImageFilter, exact: DoubleArray) {
        val centre = from + (place + 0.5) * scale
        val first = Math.max((centre - reach + 0.5).toInt(), 0)
        val found = Math.min((centre + reach + 0.5).toInt(), size) - first
        var sum = 0.0
        for (at in 0 until found) {
            exact[at] = filter.weigh((at + first - centre + 0.5) * (1.0 / spread))
            sum += exact[at]
        }
        for (at in 0 until found) {
            val share = (if (sum != 0.0) exact[at] / sum else exact[at]) * (1 shl BITS)
            values[place * stride + at] = (if (share < 0) share - 0.5 else share + 0.5).toInt()
        }
        starts[place] = first
        counts[place] = found
    }

    fun fits(size: Int, from: Float, to: Float, count: Int) =
        this.size == size && this.from == from && this.to == to && this.count == count
}

/** Two passes with fixed-point weights and 8 bits between them: as Pillow's `resize`. */
internal class Resampler(private val filter: ImageFilter) : Scaler {
    private var across: Weights? = null
    private var down: Weights? = null
    private var window: RowWindow? = null
    private var whole = IntArray(0)
    private var sums = IntArray(0)
    private var line = IntArray(0)

    override fun scale(picture: Pixels, colours: ColourRows, placement: Placement, canvas: Canvas) {
        val area = placement.area
        val channels = canvas.channels
        val columns = weigh(across, picture.width, placement.left, placement.right, area.width).also { across = it }
        val rows = weigh(down, picture.height, placement.top, placement.bottom, area.height).also { down = it }
        // Pillow 13 goes along the columns first where that is the smaller part of the work; the bytes depend on it.
        val columnsFirst = area.height < picture.height && picture.height - area.height > 2 * (picture.width - area.width)
        val length = (if (columnsFirst) picture.width else area.width) * channels
        val held = prepareMemory(rows, picture, length, area.width * channels, channels)
        for (y in 0 until area.height) {
            sums.fill(HALF)
            for (at in 0 until rows.counts[y]) {
                val row = rows.starts[y] + at
                if (!held.hold(row)) {
                    colours.read(picture, row, if (columnsFirst) held.slot(row) else whole)
                    if (!columnsFirst) narrow(columns, channels, whole, held.slot(row))
                }
                add(held.slot(row), rows.values[y * rows.stride + at])
            }
            val start = ((area.top + y) * canvas.width + area.left) * channels
            limitAll(sums, if (columnsFirst) whole else line)
            if (columnsFirst) narrow(columns, channels, whole, line)
            for (at in line.indices) canvas.values[start + at] = line[at].toByte()
        }
    }

    private fun weigh(before: Weights?, size: Int, from: Double, to: Double, count: Int): Weights {
        val first = from.toFloat()
        val last = to.toFloat()
        return before?.takeIf { it.fits(size, first, last, count) } ?: Weights(size, first, last, count, filter)
    }

    private fun prepareMemory(rows: Weights, picture: Pixels, length: Int, narrow: Int, channels: Int): RowWindow {
        val most = Math.min(rows.stride, picture.height)
        val held = window?.takeIf { it.fits(most, length) } ?: RowWindow(most, length).also { window = it }
        held.clear()
        if (whole.size < picture.width * channels) whole = IntArray(picture.width * channels)
        if (sums.size != length) sums = IntArray(length)
        if (line.size != narrow) line = IntArray(narrow)
        return held
    }

    /** A row as wide as the picture becomes one as wide as its part of the canvas. */
    private fun narrow(columns: Weights, channels: Int, row: IntArray, into: IntArray) {
        for (x in columns.starts.indices) {
            for (channel in 0 until channels) {
                var sum = HALF
                var at = columns.starts[x] * channels + channel
                for (weight in x * columns.stride until x * columns.stride + columns.counts[x]) {
                    sum += row[at] * columns.values[weight]
                    at += channels
                }
                into[x * channels + channel] = limit(sum)
            }
        }
    }

    private fun add(row: IntArray, weight: Int) {
        for (at in sums.indices) sums[at] += row[at] * weight
    }

    private fun limitAll(sums: IntArray, into: IntArray) {
        for (at in sums.indices) into[at] = limit(sums[at])
    }

    private fun limit(sum: Int) = Math.min(Math.max(sum shr BITS, 0), 255)
}
