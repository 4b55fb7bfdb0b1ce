package bundler.loader

import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.awt.image.BufferedImage
import java.io.File
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.IntBuffer
import javax.imageio.ImageIO

private val FOLDER = File(System.getProperty("images"))

/** One picture with what the preparation in Python made of it. */
private class Case(data: JsonObject) {
    val name = data.text("name")
    val width = data.long("width").toInt()
    val height = data.long("height").toInt()
    val record = data.child("record")
    val expected = File(FOLDER, "$name.expected").readBytes()
    val pixels by lazy {
        val bytes = ByteBuffer.wrap(File(FOLDER, "$name.argb").readBytes()).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer()
        IntArray(bytes.remaining()) { bytes.get(it) }
    }

    fun prepare(picture: Pixels): ByteArray {
        val preparation = ImagePreparation(record, emptyList())
        val tensor = preparation.allocate()
        preparation.fill(picture, tensor)
        return read(tensor)
    }

    override fun toString() = "$name: $width x $height, ${record.keys.joinToString { "$it ${record.raw(it)}" }}"
}

private fun read(tensor: Tensor) = tensor.bytes().let { bytes -> ByteArray(bytes.remaining()) { bytes.get(it) } }

class ImagePreparationTest {
    private val index = JsonObject.parse(File(FOLDER, "index.json").readText())
    private val cases = index.objects("cases").map(::Case)

    @Test
    fun `every picture becomes the bytes that Python makes of it`() {
        val wrong = cases.filterNot { it.prepare(ArrayPixels(it.pixels, it.width, it.height)).contentEquals(it.expected) }
        assertEquals(emptyList<Case>(), wrong, "${wrong.size} of ${cases.size}")
        assertTrue(cases.size >= 500)
    }

    @Test
    fun `a buffer is read from its position, which stays`() {
        for (case in cases.take(50)) {
            val buffer = IntBuffer.allocate(case.pixels.size + 7)
            buffer.position(7)
            buffer.put(case.pixels)
            buffer.position(7)
            assertArrayEquals(case.expected, case.prepare(BufferPixels(buffer, case.width, case.height)), case.toString())
            assertEquals(7, buffer.position())
        }
    }

    @Test
    fun `files become the same with Java's own decoder`() {
        val files = index.objects("modes").map(::Case) + cases.take(80)
        for (case in files) {
            val picture = ImageIO.read(File(FOLDER, "${case.name}.png"))
            assertArrayEquals(case.expected, case.prepare(BufferedPixels(picture)), case.toString())
        }
    }

    @Test
    fun `pictures of any kind of memory are read alike`() {
        val case = cases.first { it.width > 20 && it.height > 20 && it.pixels.all { pixel -> pixel ushr 24 == 0xff } }
        val kinds = listOf(BufferedImage.TYPE_INT_RGB, BufferedImage.TYPE_INT_ARGB, BufferedImage.TYPE_3BYTE_BGR, BufferedImage.TYPE_4BYTE_ABGR, BufferedImage.TYPE_INT_ARGB_PRE)
        for (kind in kinds) {
            val picture = BufferedImage(case.width + 5, case.height + 3, kind)
            picture.setRGB(3, 2, case.width, case.height, case.pixels, 0, case.width)
            val part = picture.getSubimage(3, 2, case.width, case.height)
            assertArrayEquals(case.expected, case.prepare(BufferedPixels(part)), "kind $kind")
        }
    }

    @Test
    fun `one preparation takes pictures of any size one after the other`() {
        val first = cases.first { it.record.text("filter") == "bicubic" && it.record.flag("antialias") }
        val preparation = ImagePreparation(first.record, emptyList())
        val tensor = preparation.allocate()
        for (case in cases.take(60)) {
            val alone = ImagePreparation(first.record, emptyList())
            val expected = alone.allocate().also { alone.fill(ArrayPixels(case.pixels, case.width, case.height), it) }
            preparation.fill(ArrayPixels(case.pixels, case.width, case.height), tensor)
            assertArrayEquals(read(expected), read(tensor), case.toString())
        }
    }

    @Test
    fun `what is no picture is refused`() {
        val preparation = ImagePreparation(cases.first().record, emptyList())
        val short = assertThrows(InputException::class.java) { ArrayPixels(IntArray(11), 4, 3) }
        assertTrue("11 pixels were given, and a picture of 4 x 3 has 12" in short.message!!, short.message)
        assertThrows(InputException::class.java) { BufferPixels(IntBuffer.allocate(13), 4, 3) }
        assertThrows(InputException::class.java) { ArrayPixels(IntArray(0), 65536, 65536) }
        for ((width, height) in listOf(0 to 0, 0 to 4, 4 to 0, -1 to -1)) {
            val none = assertThrows(InputException::class.java) { ArrayPixels(IntArray(1), width, height) }
            assertTrue("has no pixels" in none.message!!, none.message)
        }
        val pixel = ArrayPixels(IntArray(1), 1, 1)
        assertThrows(InputException::class.java) { preparation.fill(pixel, null) }
        val other = assertThrows(InputException::class.java) { preparation.fill(pixel, Tensor.floats(7, 7, 7)) }
        assertTrue("and it is prepared as" in other.message!!, other.message)
    }

    @Test
    fun `repeated pictures of one size allocate nothing that grows with them`() {
        val threads = java.lang.management.ManagementFactory.getThreadMXBean() as com.sun.management.ThreadMXBean
        for (filter in listOf("bilinear", "nearest")) {
            val case = cases.first { it.width == 640 && it.record.text("filter") == filter && it.record.text("resize") != "pad" }
            val preparation = ImagePreparation(case.record, emptyList())
            val tensor = preparation.allocate()
            repeat(3) { preparation.fill(ArrayPixels(case.pixels, case.width, case.height), tensor) }
            val before = threads.getThreadAllocatedBytes(Thread.currentThread().id)
            repeat(10) { preparation.fill(ArrayPixels(case.pixels, case.width, case.height), tensor) }
            val each = (threads.getThreadAllocatedBytes(Thread.currentThread().id) - before) / 10
            assertTrue(each < 4096, "$each bytes a picture with $filter")
        }
    }
}

class ConstantsTest {
    private fun port(name: String, type: ElementType, vararg shape: Any?) = Port(name, type, shape.toList(), false)

    private val constants =
        Constants(
            JsonObject.parse("""{"one": 2.5, "rows": [[1, 2, 3], [4, 5, 6]], "on": true, "large": 9007199254740993, "word": "a"}"""),
            listOf(
                port("one", ElementType.FLOAT16, "n", 2L),
                port("rows", ElementType.INT32, null, 3L),
                port("on", ElementType.BOOL),
                port("large", ElementType.INT64, 1L),
                port("word", ElementType.STRING, 2L),
            ),
        )

    @Test
    fun `a number fills the input, and rows keep their shape`() {
        val one = constants.allocate("one")
        assertArrayEquals(longArrayOf(1, 2), one.shape)
        assertEquals(listOf(2.5, 2.5), Numbers.asDoubles(one).toList())
        val rows = constants.allocate("rows")
        assertArrayEquals(longArrayOf(2, 3), rows.shape)
        assertEquals((1..6).toList(), List(6) { rows.ints().get(it) })
        assertEquals(1, constants.allocate("on").bytes().get(0))
        assertEquals(9007199254740993, constants.allocate("large").longs().get(0))
        assertArrayEquals(arrayOf("a", "a"), constants.allocate("word").strings())
    }

    @Test
    fun `they are written into tensors that are there, and into no others`() {
        val tensor = Tensor.of(ElementType.INT32, 2, 3)
        constants.fill("rows", tensor)
        assertEquals(6, tensor.ints().get(5))
        assertThrows(InputException::class.java) { constants.fill("rows", Tensor.of(ElementType.INT32, 1, 3)) }
        assertThrows(InputException::class.java) { constants.fill("rows", null) }
        constants.fill("word", Tensor.strings(arrayOf("a", "a"), 2))
        assertThrows(InputException::class.java) { constants.fill("word", Tensor.strings(arrayOf("a", "b"), 2)) }
    }
}

class EncodingTest {
    @Test
    fun `every number of 16 bits is written as it is read, and what is between is rounded to the even one`() {
        for (bits in 0..0x7bff) {
            val value = Numbers.decodeHalf(bits.toShort())
            assertEquals(bits, Encoding.encodeHalf(value))
            assertEquals(bits or 0x8000, Encoding.encodeHalf(-value))
            val middle = (value + Numbers.decodeHalf((bits + 1).toShort())) / 2
            if (bits < 0x7bff) assertEquals(bits + (bits and 1), Encoding.encodeHalf(middle))
        }
        assertEquals(0x7c00, Encoding.encodeHalf(65520.0))
        assertEquals(0x7bff, Encoding.encodeHalf(65519.9))
        assertEquals(0x7e00, Encoding.encodeHalf(Double.NaN))
    }
}

class CameraTest {
    private fun plane(name: String, row: Int, pixel: Int) =
        YuvPlane(ByteBuffer.wrap(File(FOLDER, "camera.$name").readBytes()), row, pixel)

    private val planes = listOf(plane("y", 48, 1), plane("u", 50, 2), plane("v", 50, 2))
    private val expected = File(FOLDER, "camera.rgb").readBytes()

    private fun check(picture: Pixels, place: (Int, Int) -> Pair<Int, Int>) {
        val row = IntArray(picture.width)
        for (y in 0 until picture.height) {
            picture.read(y, row)
            for (x in row.indices) {
                val (column, line) = place(x, y)
                for (channel in 0..2) {
                    val wanted = expected[(line * 40 + column) * 3 + channel].toInt() and 0xff
                    assertEquals(wanted.toDouble(), (row[x] shr (16 - 8 * channel) and 0xff).toDouble(), 1.0, "$x, $y")
                }
                assertEquals(0xff, row[x] ushr 24)
            }
        }
    }

    @Test
    fun `planes become pixels within one of 255, in every rotation`() {
        val whole = YuvArea(0, 0, 40, 24)
        check(YuvPixels(planes, whole, 0)) { x, y -> x to y }
        check(YuvPixels(planes, whole, 90)) { x, y -> y to 23 - x }
        check(YuvPixels(planes, whole, 180)) { x, y -> 39 - x to 23 - y }
        check(YuvPixels(planes, whole, 270)) { x, y -> 39 - y to x }
        assertEquals(24, YuvPixels(planes, whole, 90).width)
    }

    @Test
    fun `a crop is the picture`() {
        check(YuvPixels(planes, YuvArea(3, 5, 20, 10), 0)) { x, y -> x + 3 to y + 5 }
        check(YuvPixels(planes, YuvArea(3, 5, 20, 10), 90)) { x, y -> y + 3 to 14 - x }
    }

    @Test
    fun `a rotation in between is refused`() {
        val error = assertThrows(InputException::class.java) { YuvPixels(planes, YuvArea(0, 0, 40, 24), 45) }
        assertTrue("give 0, 90, 180 or 270" in error.message!!)
        assertThrows(InputException::class.java) { YuvPixels(planes, YuvArea(0, 0, 0, 24), 0) }
    }
}
