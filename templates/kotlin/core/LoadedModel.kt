package bundler.loader

import ai.onnxruntime.OrtSession.RunOptions
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext

/**
 * One model of a bundle, open on one of its variants. It can be used by several threads and coroutines at once.
 *
 * @property name its name in the bundle
 * @property report which variant runs, and why earlier ones do not
 */
public class LoadedModel internal constructor(
    private val component: ComponentConfig,
    private val opened: OpenVariant,
    private val payload: Payload,
    public val report: LoadReport,
) : AutoCloseable {
    public val name: String = component.name
    private val caller = Caller(opened.session.session, component)
    private val lifetime = Lifetime("the model ${component.name}")

    /** Its inputs, in the order in which they are given. */
    public val inputs: List<Port> get() = component.inputs

    /** Its outputs, in the order in which they are returned. */
    public val outputs: List<Port> get() = component.outputs

    /**
     * The metadata of the original model, such as a recogniser's alphabet or a detector's classes: text that whoever made
     * the model wrote.
     */
    public val metadata: Map<String, String> get() = component.metadata

    /** Whether it has state: then [stream] goes on from call to call. */
    public val hasState: Boolean get() = component.state.isNotEmpty()

    /** What became of pictures, sound or text before the model saw them when it was judged. */
    internal fun preprocessing(): JsonObject = checkNotNull(component.preprocessing) { "the model $name takes arrays" }

    /**
     * Run the model once, on a thread of [dispatcher]. A coroutine that is cancelled ends the call as soon as the runtime
     * lets it; the outputs are then freed.
     *
     * Throws [InputException] for a tensor that does not fit, [InferenceException], and [ClosedException].
     */
    @JvmOverloads
    public suspend fun run(inputs: Array<out Tensor?>, dispatcher: CoroutineDispatcher = Dispatchers.Default): Array<Tensor> =
        cancellable(dispatcher) { options -> lifetime.use { caller.run(inputs, options) } }

    /** Run the model once on this thread: not on the main thread of an app. Throws as [run]. */
    public fun runBlocking(inputs: Array<out Tensor?>): Array<Tensor> = lifetime.use { caller.run(inputs) }

    /**
     * Run the model once on this thread, and write its outputs into [outputs]: tensors that were made once, of the shapes
     * that this call gives. Nothing is allocated that grows with the tensors. Throws as [run].
     */
    public fun runInto(inputs: Array<out Tensor?>, outputs: Array<out Tensor>): Unit =
        lifetime.use { caller.runInto(inputs, outputs) }

    /** A new stream, which begins with the initial state. Throws [InputException] for a model without state. */
    public fun stream(): Stream {
        lifetime.requireOpen()
        if (!hasState) throw InputException("the model $name has no state", next = "call run")
        return Stream(component, payload, lifetime, caller)
    }

    /** Reproduce the golden set. Throws [IntegrityException] where it was altered. */
    public suspend fun selfTest(): SelfTest = withContext(Dispatchers.Default) { selfTestBlocking() }

    /** As [selfTest], on this thread. */
    public fun selfTestBlocking(): SelfTest =
        GoldenTest(component, opened.config, payload).run(report) { inputs -> lifetime.use { caller.run(inputs) } }

    /** The latency of calls on the first sample of the golden set, for [seconds]. */
    public suspend fun benchmark(seconds: Double = 3.0): Benchmark = withContext(Dispatchers.Default) { benchmarkBlocking(seconds) }

    /** As [benchmark], on this thread. */
    @JvmOverloads
    public fun benchmarkBlocking(seconds: Double = 3.0): Benchmark {
        val inputs = GoldenSet(component, payload).samples.first().inputs
        return Benchmark.measure(component.title, report.variant, seconds) { lifetime.use { caller.run(inputs) }.forEach(Tensor::close) }
    }

    /** Free the model, after the calls that run. Every later call throws [ClosedException]. */
    override fun close() {
        lifetime.close { opened.session.close() }
    }

    override fun toString(): String = "${component.title} (${report.variant}${if (lifetime.closed) ", closed" else ""})"
}

/** Run [work] on a thread of [dispatcher]; cancelling the caller terminates the runtime's call. */
internal suspend fun cancellable(dispatcher: CoroutineDispatcher, work: (RunOptions) -> Array<Tensor>): Array<Tensor> =
    RunOptions().use { options ->
        var results: Array<Tensor>? = null
        try {
            coroutineScope {
                val watch = launch(start = CoroutineStart.UNDISPATCHED) {
                    try {
                        awaitCancellation()
                    } finally {
                        options.setTerminate(true)
                    }
                }
                try {
                    withContext(NonCancellable + dispatcher) { results = work(options) }
                } finally {
                    watch.cancel()
                }
            }
            checkNotNull(results)
        } catch (error: Throwable) {
            results?.forEach(Tensor::close)
            currentCoroutineContext().ensureActive() // A call that was ended so failed for no other reason.
            throw error
        }
    }
