package bundler.loader

import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.io.File
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.FloatBuffer
import java.nio.ShortBuffer

private val FOLDER = File(System.getProperty("images"))

private fun open(name: String) = ByteBuffer.wrap(File(FOLDER, name).readBytes()).order(ByteOrder.LITTLE_ENDIAN)

/** One recording with what the preparation in Python made of it. */
private class Recording(data: JsonObject) {
    val name = data.text("name")
    val rate = data.long("rate").toInt()
    val channels = data.long("channels").toInt()
    val whole = data.flag("whole")
    val shape = data.list("shape").map { it as Long }.toLongArray()
    val record = data.child("record")
    val expected by lazy { open("$name.expected").asDoubleBuffer().let { numbers -> DoubleArray(numbers.remaining()) { numbers.get(it) } } }
    val type = ElementType.of(record.text("dtype"))

    fun sound(): Sound =
        if (whole) {
            val buffer = open("$name.raw").asShortBuffer()
            ShortSound(ShortArray(buffer.remaining()) { buffer.get(it) }, rate, channels)
        } else {
            FloatSound(open("$name.raw").asFloatBuffer(), rate, channels)
        }

    /** Of numbers around 1: 1e-5, and the last bit of a narrower type. */
    fun allow(value: Double): Double {
        val last = mapOf(ElementType.FLOAT16 to 1.0 / 1024, ElementType.BFLOAT16 to 1.0 / 128)[type] ?: 0.0
        return 1e-5 + Math.abs(value) * last
    }

    override fun toString() = "$name: $rate Hz, ${record.keys.joinToString { "$it ${record.raw(it)}" }}"
}

class AudioPreparationTest {
    private val recordings = JsonObject.parse("{\"all\": ${File(FOLDER, "sounds.json").readText()}}").objects("all").map(::Recording)

    private fun check(recording: Recording, preparation: AudioPreparation) {
        val sound = recording.sound()
        val tensor = preparation.allocate(sound)
        preparation.fill(sound, tensor)
        assertArrayEquals(recording.shape, tensor.shape, recording.toString())
        val found = Numbers.asDoubles(tensor)
        for ((at, value) in recording.expected.withIndex()) {
            assertEquals(value, found[at], recording.allow(value)) { "$recording at $at" }
        }
    }

    @Test
    fun `every recording becomes the numbers that Python makes of it`() {
        for (recording in recordings) check(recording, AudioPreparation(recording.record, emptyList()))
        assertTrue(recordings.size >= 150)
    }

    @Test
    fun `one preparation takes recordings of any rate and length one after the other`() {
        for ((record, group) in recordings.groupBy { Json.write(it.record.keys.map(it.record::raw)) }) {
            val preparation = AudioPreparation(group.first().record, emptyList())
            assertTrue(record.isNotEmpty())
            repeat(2) { group.forEach { check(it, preparation) } }
        }
    }

    private fun make(vararg changes: Pair<String, Any?>): AudioPreparation {
        val plain = mapOf("input" to "x", "dtype" to "float32", "rank" to 2L, "sample_rate" to 16000L, "mono" to "mean", "resample" to "none")
        val values = plain + mapOf("normalise" to "none", "constants" to emptyMap<String, Any?>()) + changes
        return AudioPreparation(JsonObject(values), emptyList())
    }

    @Test
    fun `buffers are read from their positions, which stay`() {
        val shorts = ShortBuffer.wrap(shortArrayOf(1, 2, 16384, -32768))
        shorts.position(2)
        val floats = FloatBuffer.wrap(floatArrayOf(9f, 0.5f, -1f))
        floats.position(1)
        for (sound in listOf(ShortSound(shorts, 16000, 1), FloatSound(floats, 16000, 1), FloatSound(floatArrayOf(0.5f, -1f), 16000, 1))) {
            val tensor = make().allocate(sound)
            make().fill(sound, tensor)
            assertEquals(listOf(0.5, -1.0), Numbers.asDoubles(tensor).toList())
        }
        assertEquals(2, shorts.position())
    }

    @Test
    fun `what is no recording is refused`() {
        fun refuse(says: String, make: () -> Unit) {
            val error = assertThrows(InputException::class.java) { make() }
            assertTrue(says in error.message!!, error.message)
        }
        refuse("0 is not a sample rate") { ShortSound(ShortArray(4), 0, 1) }
        refuse("-8000 is not a sample rate") { ShortSound(ShortArray(4), -8000, 1) }
        refuse("no 0 channels") { ShortSound(ShortArray(4), 16000, 0) }
        refuse("5 samples are no whole frames of 2 channels") { FloatSound(FloatArray(5), 16000, 2) }
        refuse("has no samples") { FloatSound(FloatArray(0), 16000, 2) }
        refuse("the recording has 8000 Hz, and the model requires 16000 Hz") { make().allocate(ShortSound(ShortArray(4), 8000, 1)) }
        refuse("and it is prepared as float32[1, 4]") { make().fill(ShortSound(ShortArray(4), 16000, 1), Tensor.floats(1, 5)) }
        refuse("is missing") { make().fill(ShortSound(ShortArray(4), 16000, 1), null) }
        refuse("more than 100000000") {
            make("resample" to "sinc", "sample_rate" to 1_000_000L).allocate(ShortSound(ShortArray(101), 1, 1))
        }
    }

    @Test
    fun `rates without a common divisor need no memory for each phase`() {
        val sound = FloatSound(FloatArray(4000) { Math.sin(it / 40.0).toFloat() }, 999_983, 1)
        val preparation = make("resample" to "sinc", "length" to 50L)
        preparation.fill(sound, preparation.allocate(sound))
    }

    @Test
    fun `repeated recordings of one length allocate nothing that grows with them`() {
        val threads = java.lang.management.ManagementFactory.getThreadMXBean() as com.sun.management.ThreadMXBean
        val preparation = make("resample" to "sinc")
        val sound = ShortSound(ShortArray(44100), 44100, 1)
        val tensor = preparation.allocate(sound)
        repeat(2) { preparation.fill(sound, tensor) }
        val before = threads.getThreadAllocatedBytes(Thread.currentThread().id)
        repeat(5) { preparation.fill(sound, tensor) }
        val each = (threads.getThreadAllocatedBytes(Thread.currentThread().id) - before) / 5
        assertTrue(each < 4096, "$each bytes a recording")
    }
}
