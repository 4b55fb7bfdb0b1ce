package bundler.loader

import ai.onnxruntime.OnnxTensor
import ai.onnxruntime.OrtEnvironment
import ai.onnxruntime.OrtException
import ai.onnxruntime.OrtSession
import ai.onnxruntime.OrtSession.RunOptions

/** Calls a session with tensors in the model's order. Safe to use from several threads at once. */
internal class Caller(private val session: OrtSession, component: ComponentConfig) {
    private val environment = OrtEnvironment.getEnvironment()
    private val inputs = component.inputs
    private val outputs = component.outputs
    private val check = InputCheck(inputs)

    /** Outputs whose sizes are all known are written where they are needed; others the runtime allocates, and are copied. */
    private val fixedShapes = outputs.map { port ->
        val sizes = port.shape?.map { it as? Long ?: -1 }
        sizes?.takeIf { port.type != ElementType.STRING && it.all { size -> size >= 0 } }?.toLongArray()
    }

    /** Outputs in new tensors. Throws [InputException], [InferenceException]. */
    fun run(values: Array<out Tensor?>, options: RunOptions? = null): Array<Tensor> {
        check.check(values)
        val made = fixedShapes.mapIndexed { place, shape -> shape?.let { Tensor.of(outputs[place].type, *it) } }
        return call(values, made, options)
    }

    /** Outputs in tensors of the caller's. Throws as [run], and where one is of another type. */
    fun runInto(values: Array<out Tensor?>, results: Array<out Tensor>, options: RunOptions? = null) {
        check.check(values)
        if (results.size != outputs.size) throw InputException("${results.size} tensors for ${outputs.size} outputs")
        outputs.forEachIndexed { place, port ->
            if (results[place].type != port.type || port.type == ElementType.STRING) {
                throw InputException("output '${port.name.take(80)}' is $port, and cannot be written into ${results[place]}")
            }
        }
        call(values, results.asList(), options)
    }

    /** Outputs by name; [place] has tensors for those that are to be written into one. Throws as [run]. */
    fun runStep(values: Array<out Tensor?>, place: (String) -> Tensor?): Map<String, Tensor> {
        check.check(values)
        val made = outputs.mapIndexed { at, port -> place(port.name) ?: fixedShapes[at]?.let { Tensor.of(port.type, *it) } }
        val results = call(values, made, null)
        return outputs.indices.associate { outputs[it].name to results[it] }
    }

    private fun call(values: Array<out Tensor?>, made: List<Tensor?>, options: RunOptions?): Array<Tensor> {
        val used = ArrayList<Tensor>(inputs.size + outputs.size)
        try {
            return call(values, made, options, used)
        } finally {
            used.forEach(Tensor::release)
        }
    }

    private fun call(
        values: Array<out Tensor?>,
        made: List<Tensor?>,
        options: RunOptions?,
        used: MutableList<Tensor>,
    ): Array<Tensor> {
        val given = LinkedHashMap<String, OnnxTensor>(inputs.size * 2)
        inputs.forEachIndexed { place, port -> values[place]?.let { given[port.name] = use(it, used) } }
        val pinned = LinkedHashMap<String, OnnxTensor>(outputs.size * 2)
        val requested = LinkedHashSet<String>()
        outputs.forEachIndexed { place, port -> made[place]?.let { pinned[port.name] = use(it, used) } ?: requested.add(port.name) }
        try {
            val results = session.run(given, requested, pinned, options)
            return Array(outputs.size) { made[it] ?: take(results, outputs[it].name) }
        } catch (error: OrtException) {
            throw InferenceException("the runtime failed while the model ran", why = firstLine(error), cause = error)
        }
    }

    private fun use(tensor: Tensor, used: MutableList<Tensor>): OnnxTensor = tensor.acquire(environment).also { used.add(tensor) }

    private fun take(results: OrtSession.Result, name: String): Tensor {
        val value = results.get(name).orElse(null)
        return Tensor.take(value as? OnnxTensor ?: throw InferenceException("output '${name.take(80)}' is not a tensor"))
    }
}
