package bundler.loader

import java.util.Collections

/** The schema of `runtime.json` that this loader reads. */
internal const val SCHEMA: Long = 4

/** One file of the payload: its path, its size in bytes and its SHA-256. */
internal class PayloadFile(val path: String, val size: Long, val sha256: String)

/** One execution provider of a variant, by the runtime's name. */
internal class Provider(data: JsonObject) {
    val name = data.text("name")
    val options = data.child("options").asTexts()
    val select = data.child("select").asTexts()
    val isPlugin = data.has("library")
}

/** What was compiled ahead of time: for devices by the provider's own numbers, and by the names that systems tell. */
internal class CompiledFor(data: JsonObject) {
    val devices = data.texts("devices")
    val names = if (data.has("names")) data.texts("names") else emptyList()
    val statement = data.text("statement")
}

/** What a variant asks of the machine. */
internal class Requirements(data: JsonObject) {
    val systems = data.texts("systems")
    val machines = data.texts("machines")
    val runtime = data.text("runtime")
    val compiled = data.childOrNull("compiled")?.let(::CompiledFor)
}

/** How close an output must be to its reference: limits by figure, of which null is none. */
internal class Tolerance(private val data: JsonObject?) {
    val isEmpty get() = data == null
    val judged get() = data?.raw("judged") != false

    operator fun get(figure: String): Double? = data?.doubleOrNull(figure)
}

/** What is generated on the device before the variant runs: a [thing], which is a `context` or a `cache`. */
internal class PreparationConfig(data: JsonObject) {
    val kind = data.text("kind")
    val thing = data.text("thing")
}

/** One way to run a model. */
internal class VariantConfig(data: JsonObject) {
    val name = data.text("name")
    val model = data.text("model")
    val files = data.objects("files").map { PayloadFile(it.text("path"), it.long("size"), it.text("sha256")) }
    val providers = data.objects("providers").map(::Provider)
    val session = data.child("session")
    val sessionConfig = data.child("session_config").asTexts()
    val disabledOptimizers = data.texts("disabled_optimizers")
    val requires = Requirements(data.child("requires"))
    val leastShare = data.double("least_share")
    val preparation = data.childOrNull("prepare")?.let(::PreparationConfig)
    private val gate = data.child("gate")

    /** What its model is, and how it is opened. */
    val identity: String
        get() = listOf(
            files.map { it.path + it.sha256 },
            providers.map { "${it.name} ${it.options.toSortedMap()} ${it.select.toSortedMap()}" },
            sessionConfig.toSortedMap(),
            session.asTexts().toSortedMap(),
            disabledOptimizers,
        ).toString()

    fun tolerance(output: String): Tolerance =
        Tolerance(gate.child("outputs").childOrNull(output) ?: gate.child("default"))
}

/** A value of a model's state: an output that is an input of the next call. */
internal class StateLink(data: JsonObject) {
    val input = data.text("input")
    val output = data.text("output")
    val initial = data.text("initial")
    val value = data.double("value")
    val file = data.text("file")
    val sha256 = data.text("sha256")
    val shape = data.list("shape").map { it as Long }
    val grows = data.longOrNull("grows")?.toInt()
}

/** One model of the bundle. */
internal class ComponentConfig(data: JsonObject) {
    val name = data.text("name")

    /** What people read: the only model of a bundle is the component `model`, and has the name of its file. */
    val title = if (name == SOLE) data.text("model") else name
    val inputs = data.child("signature").objects("inputs").map(Port::read)
    val outputs = data.child("signature").objects("outputs").map(Port::read)
    val variants = data.objects("variants").map(::VariantConfig)
    val golden = data.text("golden")
    val goldenDigest = data.text("golden_digest")
    val unstableOutputs = data.texts("unstable_outputs").toSet()
    val state = data.objects("state").map(::StateLink)
    val preprocessing = data.childOrNull("preprocessing")
    val metadata: Map<String, String> = Collections.unmodifiableMap(data.childOrNull("metadata")?.asTexts() ?: emptyMap())

    private companion object {
        const val SOLE = "model"
    }
}

/** The whole of `runtime.json`. */
internal class BundleConfig(data: JsonObject) {
    val name = data.text("name")
    val target = data.text("target")
    val strict = data.text("fallback") == "strict"
    val telemetry = data.flag("telemetry")
    val together = data.texts("together")
    val components = data.objects("components").map(::ComponentConfig)

    companion object {
        const val PATH = "runtime.json"

        /** Throws [IntegrityException] for text that bundler did not write, [IncompatibleException] for another schema. */
        fun read(text: String): BundleConfig {
            try {
                val data = JsonObject.parse(text)
                val schema = data.long("schema")
                if (schema != SCHEMA) {
                    val writer = if (schema < SCHEMA) "an earlier" else "a later"
                    throw IncompatibleException(
                        "runtime.json has schema $schema",
                        why = "$writer version of bundler wrote it, and this loader reads schema $SCHEMA",
                        next = "build the bundle again",
                    )
                }
                return BundleConfig(data).also(::requireInside)
            } catch (error: IllegalArgumentException) {
                throw IntegrityException("runtime.json cannot be read", why = firstLine(error), cause = error)
            }
        }

        private fun requireInside(config: BundleConfig) {
            for (component in config.components) {
                val files = component.variants.flatMap { variant -> variant.files.map { it.path } + variant.model }
                val initial = component.state.filter { it.initial == "file" }.map { it.file }
                for (path in files + initial + component.golden) {
                    if (leadsOut(path)) throw IntegrityException("runtime.json names a file outside", why = path.take(200))
                }
                for (variant in component.variants) {
                    if (variant.files.none { it.path == variant.model }) {
                        throw IntegrityException("runtime.json names a model that is not among its files", why = variant.model)
                    }
                }
            }
        }
    }
}

/** Whether a path of the bundle's own files could lead out of their folder. */
internal fun leadsOut(path: String): Boolean {
    val parts = path.replace('\\', '/').split('/')
    return parts.first().isEmpty() || ':' in parts.first() || ".." in parts
}
