package bundler.loader

/**
 * How one variant of a model reproduced its golden set.
 *
 * @property model the name of the model
 * @property variant the variant that ran
 * @property samples the number of recorded samples; for a stream, of its steps
 * @property faults outputs that are out of tolerance, a sentence each
 * @property unjudged by output, why its comparison could not have failed
 * @property report what the loader did
 */
public class SelfTest internal constructor(
    public val model: String,
    public val variant: String,
    public val samples: Int,
    public val faults: List<String>,
    public val unjudged: Map<String, String>,
    public val report: LoadReport,
    private val title: String,
    private val synthetic: Boolean,
    private val outputs: List<Map<String, Any?>>,
) {
    /** Whether every output of every sample is within tolerance. */
    public val passed: Boolean get() = faults.isEmpty()

    /** The figures of each output by the name of the figure, such as `max_absolute` and `sqnr_db`; null is no figure. */
    public val figures: List<Map<String, Any?>> get() = outputs

    /** Throws [SelfTestException] with all faults. */
    public fun requirePassed() {
        if (passed) return
        throw SelfTestException(
            "$title does not reproduce its golden set here",
            why = faults.joinToString("; "),
            next = "report it to the author of the bundle, with the load report of this device",
        )
    }

    override fun toString(): String {
        val kind = if (synthetic) "synthetic samples" else "samples"
        return "$title, variant $variant: " + if (passed) "$samples $kind are within tolerance" else faults.joinToString("; ")
    }

    internal fun toMap(): Map<String, Any?> = linkedMapOf(
        "component" to model,
        "variant" to variant,
        "status" to if (passed) "passed" else "failed",
        "reason" to faults.joinToString("; "),
        "samples" to samples,
        "synthetic" to synthetic,
        "outputs" to outputs,
        "unjudged" to unjudged,
        "providers" to report.providers,
        "rejected" to report.rejected,
        "nodes" to report.nodes,
    )
}

/** Runs the samples of a golden set and compares. */
internal class GoldenTest(private val component: ComponentConfig, private val variant: VariantConfig, payload: Payload) {
    private val golden = GoldenSet(component, payload)
    private val figures = component.outputs.map { OutputFigures(it.name, golden.reference(it.name)) }

    /** [call] runs the model on its inputs in order. Throws [IntegrityException] for a set without samples. */
    fun run(report: LoadReport, call: (Array<Tensor?>) -> Array<Tensor>): SelfTest {
        if (golden.samples.isEmpty()) throw IntegrityException("the golden set of ${component.name} has no samples")
        var held = emptyMap<String, Tensor>()
        for (sample in golden.samples) {
            val inputs = sample.inputs
            component.inputs.forEachIndexed { place, port -> held[port.name]?.let { inputs[place] = it } }
            val results = call(inputs)
            compare(sample, results)
            held.values.forEach(Tensor::close)
            held = golden.state.mapValues { (_, output) -> results[component.outputs.indexOfFirst { it.name == output }] }
            results.filter { it !in held.values }.forEach(Tensor::close)
        }
        held.values.forEach(Tensor::close)
        return judge(report)
    }

    private fun compare(sample: GoldenSample, results: Array<Tensor>) {
        component.outputs.forEachIndexed { place, port ->
            val recorded = sample.output(port.name)
            if (recorded == null) {
                figures[place].refuse("sample '${sample.name}' has no recorded value of it")
            } else {
                val actual = results[place]
                val isStable = port.name !in component.unstableOutputs
                val same = actual.type == recorded.type && actual.sizes().contentEquals(recorded.sizes())
                figures[place].add(if (isStable || !same) actual else recorded, recorded, tolerance(port.name), "sample '${sample.name}'")
                recorded.close()
            }
        }
    }

    private fun tolerance(output: String) =
        if (output in component.unstableOutputs) Tolerance(null) else variant.tolerance(output)

    private fun judge(report: LoadReport): SelfTest {
        val unjudged = figures.associate { it.name to explainUnjudged(it) }.filterValues { it.isNotEmpty() }
        return SelfTest(
            model = component.name,
            title = component.title,
            variant = variant.name,
            samples = golden.samples.size,
            faults = figures.mapNotNull { output -> output.findFault(tolerance(output.name))?.let { "output '${output.name}': $it" } },
            unjudged = unjudged,
            report = report,
            synthetic = golden.synthetic,
            outputs = figures.map { it.toMap(it.name !in unjudged) },
        )
    }

    private fun explainUnjudged(figure: OutputFigures) =
        if (variant.tolerance(figure.name).judged) figure.reference.unjudged else "it has no limits"
}
