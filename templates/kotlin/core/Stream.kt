package bundler.loader

import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.isActive
import kotlinx.coroutines.withContext
import java.util.concurrent.locks.ReentrantLock

/**
 * Calls of a model with state, each of which goes on from the state that the one before left. The state lies in two sets
 * of buffers, which take turns as what a call reads and what it writes: a step copies no state. A stream is used by one
 * caller at a time; a model has any number of them.
 */
public class Stream internal constructor(
    private val component: ComponentConfig,
    private val payload: Payload,
    private val model: Lifetime,
    private val caller: Caller,
) : AutoCloseable {
    private val links = component.state
    private val busy = ReentrantLock()
    private var current: List<Tensor> = emptyList()
    private var next: List<Tensor?> = emptyList()
    private var closed = false
    private val wanted = component.outputs.filter { output -> links.none { it.output == output.name } }
    private val given = component.inputs.filter { input -> links.none { it.input == input.name } }

    init {
        fill(links.map(::makeInitial))
    }

    /** The inputs of a step, without the state. */
    public val inputs: List<Port> get() = given

    /** The outputs of a step, without the state. */
    public val outputs: List<Port> get() = wanted

    /**
     * Run the next step on a thread of [dispatcher]. A step that has begun runs to its end: where its coroutine was
     * cancelled meanwhile, the state has moved on, and the outputs are freed. Throws as [runBlocking].
     */
    @JvmOverloads
    public suspend fun run(inputs: Array<out Tensor?>, dispatcher: CoroutineDispatcher = Dispatchers.Default): Array<Tensor> {
        val results = withContext(NonCancellable + dispatcher) { runBlocking(inputs) }
        if (!currentCoroutineContext().isActive) results.forEach(Tensor::close)
        currentCoroutineContext().ensureActive()
        return results
    }

    /**
     * Run the next step on this thread. A step that fails leaves the state as it was.
     *
     * Throws [InputException] for a tensor that does not fit, or where another caller uses the stream; [InferenceException];
     * [ClosedException].
     */
    public fun runBlocking(inputs: Array<out Tensor?>): Array<Tensor> =
        exclusively {
            if (inputs.size != given.size) throw InputException("${inputs.size} inputs were given, a step has ${given.size}")
            val results = model.use { step(inputs) }
            wanted.map { results.getValue(it.name) }.toTypedArray()
        }

    /** Begin again with the initial state. Throws as [runBlocking]. */
    public fun reset(): Unit = exclusively { fill(links.map(::makeInitial)) }

    /** Copies of the state by the names of its inputs; assigned, the stream goes on from there. */
    public var state: Map<String, Tensor>
        get() = exclusively { links.indices.associate { links[it].input to copy(current[it]) } }
        set(values) = exclusively { fill(links.map { link -> restore(link, values) }) }

    /** Free the state, after the step that may be running. Every later call throws [ClosedException]. */
    override fun close() {
        busy.lock()
        try {
            closed = true
            (current + next.filterNotNull()).forEach(Tensor::close)
        } finally {
            busy.unlock()
        }
    }

    private fun step(inputs: Array<out Tensor?>): Map<String, Tensor> {
        val values = component.inputs.map { port ->
            val place = links.indexOfFirst { it.input == port.name }
            if (place >= 0) current[place] else inputs[given.indexOf(port)]
        }
        val found = caller.runStep(values.toTypedArray()) { output -> links.indexOfFirst { it.output == output }.takeIf { it >= 0 }?.let { next[it] } }
        val after = links.map { found.getValue(it.output) }
        val before = current
        next = links.mapIndexed { place, link -> if (link.grows == null) before[place] else null.also { before[place].close() } }
        current = after
        return found
    }

    private fun fill(values: List<Tensor>) {
        (current + next.filterNotNull()).forEach(Tensor::close)
        current = values
        next = values.mapIndexed { place, value -> if (links[place].grows == null) Tensor.of(value.type, *value.sizes()) else null }
    }

    private fun makeInitial(link: StateLink): Tensor {
        val port = port(link)
        if (link.initial == "file") return readInitial(link, port)
        val sizes = port.shape.orEmpty().mapIndexed { axis, size -> if (axis == link.grows) 0L else size as Long }
        val tensor = Tensor.of(port.type, *sizes.toLongArray())
        if (link.initial == "constant") fillConstant(tensor, link.value)
        return tensor
    }

    private fun readInitial(link: StateLink, port: Port): Tensor {
        val data = payload.read(link.file)
        val digest = sha256(data)
        if (digest != link.sha256) throw IntegrityException("${link.file} does not match its checksum", why = "SHA-256 is $digest")
        return Tensor.of(port.type, *link.shape.toLongArray()).also { it.bytes().put(data) }
    }

    private fun fillConstant(tensor: Tensor, value: Double) {
        when (tensor.type) {
            ElementType.FLOAT32 -> tensor.floats().let { out -> repeat(tensor.size) { out.put(value.toFloat()) } }
            ElementType.FLOAT64 -> tensor.doubles().let { out -> repeat(tensor.size) { out.put(value) } }
            ElementType.INT64 -> tensor.longs().let { out -> repeat(tensor.size) { out.put(value.toLong()) } }
            ElementType.INT32 -> tensor.ints().let { out -> repeat(tensor.size) { out.put(value.toInt()) } }
            else -> throw IncompatibleException("a state of ${tensor.type.key} that begins with $value", next = "build with an initial value in a file")
        }
    }

    private fun restore(link: StateLink, values: Map<String, Tensor>): Tensor {
        val value = values[link.input] ?: throw InputException("the state has no '${link.input}'")
        InputCheck(listOf(port(link))).check(arrayOf(value))
        return copy(value)
    }

    private fun copy(value: Tensor) = Tensor.of(value.type, *value.sizes()).also { it.fillFrom(value) }

    private fun port(link: StateLink) = component.inputs.first { it.name == link.input }

    private inline fun <T> exclusively(work: () -> T): T {
        if (!busy.tryLock()) {
            throw InputException(
                "the stream is in use by another caller",
                why = "each step goes on from the one before",
                next = "open a separate stream for each caller: stream()",
            )
        }
        try {
            if (closed) throw ClosedException("the stream is closed", next = "open another: stream()")
            return work()
        } finally {
            busy.unlock()
        }
    }
}
