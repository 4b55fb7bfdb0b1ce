package bundler.loader

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.collect
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.io.File
import java.nio.ByteBuffer
import java.util.concurrent.atomic.AtomicInteger
import kotlin.concurrent.thread

/** The network for images: float32[batch, 3, 16, 16] to float32[batch, 5]. */
class LoaderTest {
    @Test
    fun `the golden set is reproduced`() {
        open("cnn").use { bundle ->
            val result = bundle.selfTestBlocking().single()
            assertTrue(result.passed, result.toString())
            assertTrue(result.samples > 1)
        }
    }

    @Test
    fun `it says what runs`() {
        open("cnn").use { bundle ->
            val report = bundle.report.getValue("model")
            assertEquals("cpu", report.variant)
            assertFalse(report.fellBack)
        }
    }

    @Test
    fun `inputs that do not fit are refused with what the model requires`() {
        open("cnn").use { bundle ->
            val model = bundle.model("model")
            val type = assertThrows(InputException::class.java) { model.runBlocking(arrayOf(Tensor.of(ElementType.INT64, 1, 3, 16, 16))) }
            assertTrue("has type int64, the model requires float32" in type.message!!, type.message)
            val rank = assertThrows(InputException::class.java) { model.runBlocking(arrayOf(Tensor.floats(3, 16, 16))) }
            assertTrue("it has 3 dimensions, not 4" in rank.message!!, rank.message)
            val size = assertThrows(InputException::class.java) { model.runBlocking(arrayOf(Tensor.floats(1, 4, 16, 16))) }
            assertTrue("axis 1 is 4, not 3" in size.message!!, size.message)
            val none = assertThrows(InputException::class.java) { model.runBlocking(arrayOf(null)) }
            assertTrue("'image' is missing" in none.message!!, none.message)
            assertThrows(InputException::class.java) { model.runBlocking(emptyArray()) }
        }
    }

    @Test
    fun `memory that the runtime cannot read is refused`() {
        val heap = assertThrows(InputException::class.java) { Tensor.wrap(ElementType.FLOAT32, ByteBuffer.allocate(16), 4) }
        assertTrue("on the Java heap" in heap.message!!, heap.message)
        val order = assertThrows(InputException::class.java) { Tensor.wrap(ElementType.FLOAT32, ByteBuffer.allocateDirect(16), 4) }
        assertTrue("byte order" in order.message!!, order.message)
        val short = assertThrows(InputException::class.java) { Tensor.wrap(ElementType.FLOAT32, Tensor.allocate(12), 4) }
        assertTrue("12 bytes left, and the shape needs 16" in short.message!!, short.message)
        assertThrows(InputException::class.java) { Tensor.floats(-1, 4) }
        assertThrows(InputException::class.java) { Tensor.floats(1L shl 40) }
        assertThrows(InputException::class.java) { Tensor.floats(4).longs() }
    }

    @Test
    fun `a wrapped buffer is read where it lies`() {
        open("cnn").use { bundle ->
            val memory = Tensor.allocate(4 * 3 * 16 * 16)
            Tensor.wrap(ElementType.FLOAT32, memory, 1, 3, 16, 16).use { input ->
                val before = read(bundle.model("model").runBlocking(arrayOf(input)))
                val floats = memory.asFloatBuffer()
                repeat(floats.capacity()) { floats.put(it, 1f) }
                val after = read(bundle.model("model").runBlocking(arrayOf(input)))
                assertFalse(before.contentEquals(after))
            }
        }
    }

    @Test
    fun `outputs are written into the caller's tensors`() {
        open("cnn").use { bundle ->
            val model = bundle.model("model")
            val (input, output) = random(7) to Tensor.floats(1, 5)
            model.runInto(arrayOf(input), arrayOf(output))
            assertArrayEquals(read(model.runBlocking(arrayOf(input))), read(arrayOf(output)))
            assertThrows(InputException::class.java) { model.runInto(arrayOf(input), arrayOf(Tensor.of(ElementType.INT64, 1, 5))) }
        }
    }

    @Test
    fun `many coroutines get their own answers`() {
        open("cnn").use { bundle ->
            val model = bundle.model("model")
            val expected = (0 until 20).map { read(model.runBlocking(arrayOf(random(it)))) }
            runBlocking {
                val answers = (0 until 200).map { async(Dispatchers.Default) { read(model.run(arrayOf(random(it % 20)))) } }.awaitAll()
                answers.forEachIndexed { place, answer -> assertArrayEquals(expected[place % 20], answer) }
            }
        }
    }

    @Test
    fun `closing waits for the calls that run, and refuses those that come`() {
        val model = open("cnn").model("model")
        val refused = AtomicInteger()
        val callers = List(4) {
            thread {
                try {
                    while (true) model.runBlocking(arrayOf(random(1))).forEach(Tensor::close)
                } catch (_: ClosedException) {
                    refused.incrementAndGet()
                }
            }
        }
        Thread.sleep(100)
        model.close()
        model.close()
        callers.forEach { it.join(10_000) }
        assertEquals(4, refused.get())
        assertTrue("closed" in model.toString())
    }

    @Test
    fun `a flow tells the steps and hands the bundle over`() = runBlocking {
        val seen = flowOfOpening(OpenOptions()) { openLater("cnn", it) }.toList()
        val bundle = (seen.last() as Opening.Ready).bundle
        assertEquals(listOf("VERIFYING", "LOADING", "READY"), seen.dropLast(1).map { (it as Opening.Doing).progress.step.name })
        assertTrue(bundle.selfTest().single().passed)
        bundle.close()
    }

    @Test
    fun `a collector that ends early leaves no open bundle`() = runBlocking {
        val opened = ArrayList<LoadedBundle>()
        flowOfOpening(OpenOptions()) { options ->
            withContext(NonCancellable) { openLater("cnn", options) }.also(opened::add)
        }.first()
        assertThrows(ClosedException::class.java) { opened.single().model("model").runBlocking(arrayOf(random(1))) }
        val error = runCatching { flowOfOpening(OpenOptions(only = setOf("none"))) { openLater("cnn", it) }.collect() }
        assertTrue(error.exceptionOrNull() is InputException, error.toString())
    }

    @Test
    fun `a tensor that is closed during a call stays until its end`() {
        open("slow").use { bundle ->
            val input = Tensor.floats(64, 1024)
            val outcome = java.util.concurrent.LinkedBlockingQueue<Int>()
            thread { outcome.add(bundle.model("model").runBlocking(arrayOf(input)).size) }
            Thread.sleep(20)
            input.close()
            assertEquals(1, outcome.poll(60, java.util.concurrent.TimeUnit.SECONDS))
            assertThrows(ClosedException::class.java) { bundle.model("model").runBlocking(arrayOf(input)) }
        }
    }

    @Test
    fun `a cancelled coroutine ends the call`() {
        open("slow").use { bundle ->
            val model = bundle.model("model")
            val whole = measure { model.runBlocking(arrayOf(Tensor.floats(256, 1024))) }
            val taken = measure {
                runBlocking {
                    val job = launch { model.run(arrayOf(Tensor.floats(256, 1024))) }
                    delay(20)
                    job.cancelAndJoin()
                }
            }
            assertTrue(taken < whole * 0.8, "it took $taken s of $whole s")
            assertEquals(1, model.runBlocking(arrayOf(Tensor.floats(1, 1024))).size)
        }
    }

    @Test
    fun `ten thousand calls take no more memory`() {
        open("cnn").use { bundle ->
            val model = bundle.model("model")
            val (input, output) = random(3) to Tensor.floats(1, 5)
            repeat(2000) { model.runInto(arrayOf(input), arrayOf(output)) }
            val before = residentKilobytes()
            repeat(10_000) { model.runInto(arrayOf(input), arrayOf(output)) }
            val grown = residentKilobytes() - before
            assertTrue(grown < 4096, "it grew by $grown kB")
        }
    }

    @Test
    fun `strict mode throws where the preferred variant cannot run`() {
        val error = assertThrows(FallbackException::class.java) { open("fallback", OpenOptions(strict = true)) }
        assertTrue("variant xnnpack cannot run here" in error.message!!, error.message)
        open("fallback").use { bundle ->
            val report = bundle.report.getValue("model")
            assertEquals("cpu", report.variant)
            assertEquals("the runtime here has no XnnpackExecutionProvider", report.rejected["xnnpack"])
            assertTrue(report.fellBack)
        }
    }

    @Test
    fun `progress is told in order`() {
        val told = ArrayList<String>()
        open("cnn", OpenOptions(progress = { told.add(it.toString()) })).close()
        assertEquals(listOf("model: verifying cpu", "model: loading cpu", "model: ready cpu"), told)
    }

    @Test
    fun `threads that are no number of threads are refused`() {
        assertThrows(InputException::class.java) { OpenOptions(threads = -1) }
        open("cnn", OpenOptions(threads = 1, spinning = false)).use { assertTrue(it.selfTestBlocking().single().passed) }
    }

    @Test
    fun `a benchmark counts calls`() {
        open("cnn").use { bundle ->
            val found = bundle.model("model").benchmarkBlocking(0.1)
            assertTrue(found.milliseconds.isNotEmpty() && found.median > 0 && found.quantile(0.1) <= found.median)
        }
    }
}

internal fun payload(name: String) = File(System.getProperty("bundles"), name)

internal fun open(name: String, options: OpenOptions = OpenOptions(), store: File? = null): LoadedBundle =
    LoadedBundle.openBlocking(FolderPayload(payload(name)), host(store), digest(name), options)

internal suspend fun openLater(name: String, options: OpenOptions): LoadedBundle =
    LoadedBundle.open(FolderPayload(payload(name)), host(), digest(name), options)

internal fun host(store: File? = null) = JvmHost(standsIn = true, store = store)

internal fun digest(name: String) = sha256(File(payload(name), "runtime.json").readBytes())

internal fun random(seed: Int): Tensor {
    val random = java.util.Random(seed.toLong())
    return Tensor.floats(1, 3, 16, 16).also { tensor -> tensor.floats().let { out -> repeat(tensor.size) { out.put(random.nextFloat()) } } }
}

internal fun read(outputs: Array<Tensor>): FloatArray =
    outputs.first().let { tensor -> tensor.floats().let { values -> FloatArray(tensor.size) { values.get(it) } } }

private fun measure(work: () -> Unit): Double {
    val start = System.nanoTime()
    work()
    return (System.nanoTime() - start) / 1e9
}

private fun residentKilobytes(): Long {
    System.gc()
    return File("/proc/self/status").readLines().first { it.startsWith("VmRSS") }.filter { it.isDigit() }.toLong()
}
