package bundler.calls

import java.io.File

private const val MOST_STEPS = 8

/** Run the model of component [name] on its first samples as the self-test does, with its state passed by hand. */
internal fun ask(loader: Loader, name: String, about: JsonObject, bundle: Any): ComponentCalls {
    val state = about.child("state").asTexts()
    val model = checkNotNull(bundle.call("model", name))
    val caller = model.peek("caller")
    val isStream = state.isNotEmpty() && about.texts("unstable").isEmpty()
    val samples = loader.readSamples(about.text("golden"), if (isStream) MOST_STEPS else 1)
    val answers = ArrayList<Map<String, Any?>>()
    for (sample in samples) {
        val held = state.mapValues { (_, output) -> answers.lastOrNull()?.getValue(output) }.filterValues { it != null }
        val values = loader.gather(about.child("inputs").keys.map { (sample + held)[it] })
        answers.add(about.child("outputs").keys.zip(caller.call("run", values, null) as Array<*>).toMap())
    }
    val variant = checkNotNull(model.call("getReport")).call("getVariant") as String
    return ComponentCalls(name, about, variant, samples, answers, isStream)
}

/** The class of one component, and what its model answers to [samples] on [variant]. */
internal class ComponentCalls(
    private val name: String,
    private val about: JsonObject,
    val variant: String,
    private val samples: List<Map<String, Any?>>,
    private val answers: List<Map<String, Any?>>,
    private val isStream: Boolean,
) {
    private val inputs = about.child("inputs").asTexts()
    private val outputs = about.child("outputs").asTexts()
    private val state = about.child("state").asTexts()
    private val wanted = about.child("wanted")
    private val unstable = about.texts("unstable")
    private val type = Class.forName(about.text("class"))

    /** Whether the class in an open bundle runs its own component. */
    fun checkModel(bundle: Any): String {
        val model = find(bundle)
        val opened = model.peek("model").call("getName")
        val ran = checkNotNull(model.call("getReport")).call("getVariant")
        return when {
            model.javaClass != type -> "${about.text("getter")} is a ${model.javaClass.simpleName}"
            opened != name -> "${type.simpleName} opens the component $opened"
            ran != variant -> "${type.simpleName} runs on variant $ran"
            else -> ""
        }
    }

    /** Whether its methods take and give values by their own names as well. */
    fun checkCalls(bundle: Any): String {
        val model = find(bundle)
        return checkModel(bundle).ifEmpty { checkRuns(model) }.ifEmpty { if (isStream) checkStream(model) else "" }
    }

    /** The variants of which outputs are wanted, and that no app gets here. */
    val others: Set<String> get() = wanted.keys - variant

    /**
     * Write what its class answers on [variant] where the self-test asks the model, so that what the self-test compares is
     * compared elsewhere as well. It must go on to the sample after the last that is wanted.
     */
    fun bring(loader: Loader, bundle: Any, variant: String): String {
        val task = wanted.childOrNull(variant) ?: return ""
        val (count, recorded) = listOf(task.long("samples"), task.long("recorded"))
        val model = find(bundle)
        val writer = OutputWriter(File(task.text("folder")))
        var asked = 0L
        try {
            loader.test(model.peek("model")) { values ->
                if (asked++ == count) throw Enough()
                val found = checkNotNull(model.await("run", give("Inputs", inputs, inputs.keys.zip(values).toMap())))
                val answers = outputs.mapValues { (_, getter) -> found.call(getter) }
                writer.add(answers)
                loader.gather(answers.values.toList())
            }
        } catch (_: Enough) {
            // there are more samples
        }
        writer.finish()
        return if (asked < minOf(count + 1, recorded)) "${type.simpleName}: its self-test runs $asked of $recorded samples" else ""
    }

    private fun find(bundle: Any) = about.textOrNull("getter")?.let { checkNotNull(bundle.call(it)) } ?: bundle

    private fun checkRuns(model: Any): String {
        val given = give("Inputs", inputs, samples[0])
        val found = compare(model.call("runBlocking", given), answers[0], "runBlocking")
            .ifEmpty { compare(model.await("run", given), answers[0], "run") }
        if (found.isNotEmpty() || !about.flag("fixed")) return found
        val filled = kind("Outputs").callStatic("allocate")
        model.call("runInto", given, filled)
        return compare(filled, answers[0], "runInto")
    }

    /** Two streams at once, a state that is restored, and a reset. */
    private fun checkStream(model: Any): String {
        val steps = samples.map { give("StreamInputs", inputs - state.keys, it) }
        val middle = steps.size / 2
        (model.call("stream") as AutoCloseable).use { first ->
            (model.call("stream") as AutoCloseable).use { second ->
                var saved: Any? = null
                fun step(stream: Any, place: Int, what: String) = compare(stream.call("runBlocking", steps[place]), answers[place], what)
                for (place in steps.indices) {
                    if (place == middle) saved = first.call("getState")
                    var found = step(first, place, "step ${place + 1} of a stream")
                    if (place == minOf(1, steps.size - 1)) { // the first stream has left its initial state
                        found = found.ifEmpty { compare(second.await("run", steps[0]), answers[0], "a second stream's first step") }
                    }
                    if (found.isNotEmpty()) return found
                }
                first.call("setState", saved)
                val found = step(first, middle, "a step after its state was restored")
                first.call("reset")
                return found.ifEmpty { step(first, 0, "the first step after a reset") }
            }
        }
    }

    /** Values as an app gives them: each in the place of the class that has its name. */
    private fun give(kind: String, ports: Map<String, String>, values: Map<String, Any?>): Any {
        val made = kind(kind).create(*ports.keys.map { values[it] }.toTypedArray())
        val other = ports.entries.firstOrNull { (port, getter) -> made.call(getter) !== values[port] }
        if (other != null) throw Fault("${made.javaClass.simpleName} has another value as ${other.value}")
        return made
    }

    /** The first output that differs, by its name in Kotlin or in the model; nothing where none does. */
    private fun compare(found: Any?, wanted: Map<String, Any?>, what: String): String {
        val isStep = checkNotNull(found).javaClass.name == "${type.name}StreamOutputs"
        val compared = outputs.filterKeys { it !in unstable && !(isStep && it in state.values) }
        val other = compared.entries.firstOrNull { (port, getter) ->
            listOf(found.call(getter), found.call("get", port)).any { !isAlike(checkNotNull(it), checkNotNull(wanted[port])) }
        } ?: return ""
        return "${type.simpleName}: $what gives another ${other.key} than the model"
    }

    private fun kind(suffix: String) = Class.forName(type.name + suffix)
}

/** No more outputs are wanted. */
private class Enough : Exception()
