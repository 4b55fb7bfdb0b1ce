package bundler.loader

import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import kotlin.concurrent.thread

/** Models with state: a GRU, and a decoder whose keys and values grow. */
class StreamTest {
    private fun inputs(golden: GoldenSample, stream: Stream, component: ComponentConfig): Array<Tensor?> =
        stream.inputs.map { port -> golden.inputs[component.inputs.indexOfFirst { it.name == port.name }] }.toTypedArray()

    private fun config(name: String) = BundleConfig.read(String(FolderPayload(payload(name)).read("runtime.json"))).components.single()

    private fun follow(name: String) {
        val component = config(name)
        val golden = GoldenSet(component, FolderPayload(payload(name)))
        open(name).use { bundle ->
            bundle.model("model").stream().use { stream ->
                for (sample in golden.samples) {
                    val outputs = stream.runBlocking(inputs(sample, stream, component))
                    stream.outputs.forEachIndexed { place, port ->
                        val expected = checkNotNull(sample.output(port.name))
                        assertArrayEquals(read(arrayOf(expected)), read(arrayOf(outputs[place])), 1e-4f)
                    }
                }
            }
        }
    }

    @Test
    fun `a stream follows the recorded steps`() = follow("stream")

    @Test
    fun `a stream whose state grows follows the recorded steps`() = follow("decoder")

    @Test
    fun `the golden set is a sequence of steps`() {
        open("stream").use { assertTrue(it.selfTestBlocking().single().passed) }
    }

    @Test
    fun `reset and state begin again`() {
        val component = config("stream")
        val golden = GoldenSet(component, FolderPayload(payload("stream")))
        open("stream").use { bundle ->
            val stream = bundle.model("model").stream()
            fun step(at: Int) = read(stream.runBlocking(inputs(golden.samples[at], stream, component)))
            val first = step(0)
            val held = stream.state
            val second = step(1)
            stream.state = held
            assertArrayEquals(second, step(1))
            stream.reset()
            assertArrayEquals(first, step(0))
            assertEquals(component.state.map { it.input }.toSet(), held.keys)
            assertThrows(InputException::class.java) { stream.state = emptyMap() }
            stream.close()
            assertThrows(ClosedException::class.java) { step(0) }
        }
    }

    @Test
    fun `a step that fails leaves the state as it was`() {
        val component = config("stream")
        val golden = GoldenSet(component, FolderPayload(payload("stream")))
        open("stream").use { bundle ->
            val (one, other) = bundle.model("model").stream() to bundle.model("model").stream()
            one.runBlocking(inputs(golden.samples[0], one, component))
            other.runBlocking(inputs(golden.samples[0], other, component))
            assertThrows(InputException::class.java) { one.runBlocking(arrayOf(Tensor.floats(1, 1))) }
            assertThrows(InputException::class.java) { one.runBlocking(emptyArray()) }
            val results = listOf(one, other).map { read(it.runBlocking(inputs(golden.samples[1], it, component))) }
            assertArrayEquals(results[0], results[1])
        }
    }

    @Test
    fun `a stream is used by one caller at a time`() {
        val component = config("stream")
        val sample = GoldenSet(component, FolderPayload(payload("stream"))).samples.first()
        open("stream").use { bundle ->
            val stream = bundle.model("model").stream()
            val messages = java.util.Collections.synchronizedList(ArrayList<String>())
            val callers = List(4) {
                thread {
                    repeat(500) {
                        try {
                            stream.runBlocking(inputs(sample, stream, component)).forEach(Tensor::close)
                        } catch (error: InputException) {
                            messages.add(error.what)
                        }
                    }
                }
            }
            callers.forEach { it.join() }
            assertEquals(setOf("the stream is in use by another caller"), messages.toSet())
        }
    }

    @Test
    fun `a model without state has no stream`() {
        open("cnn").use { bundle -> assertThrows(InputException::class.java) { bundle.model("model").stream() } }
    }
}
