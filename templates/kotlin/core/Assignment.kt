package bundler.loader

import ai.onnxruntime.OrtSession.SessionOptions
import java.io.File
import java.io.IOException

/**
 * Counts the nodes that each provider was assigned.
 *
 * The runtime's Java API does not tell the assignment, but a profile does: it names the provider of every node that ran.
 * So the first sample of the golden set runs once with a profile.
 */
internal class Assignment(private val sessions: SessionFactory, private val payload: Payload, private val host: Host) {
    /** Nodes by provider; empty where no profile can be written. */
    fun count(
        component: ComponentConfig,
        variant: VariantConfig,
        source: ModelSource,
        adapt: (SessionOptions) -> Unit = {},
    ): Map<String, Int> {
        val folder = host.store ?: return emptyMap()
        val sample = GoldenSet(component, payload).samples.firstOrNull() ?: return emptyMap()
        val prefix =
            try {
                folder.mkdirs()
                File.createTempFile("profile-", "", folder)
            } catch (_: IOException) {
                return emptyMap()
            }
        return try {
            profile(component, variant, source, sample) {
                adapt(it)
                it.enableProfiling(prefix.path)
            }
        } finally {
            folder.listFiles { file -> file.name.startsWith(prefix.name) }?.forEach(File::delete)
        }
    }

    private fun profile(
        component: ComponentConfig,
        variant: VariantConfig,
        source: ModelSource,
        sample: GoldenSample,
        adapt: (SessionOptions) -> Unit,
    ): Map<String, Int> {
        val written =
            sessions.open(variant, source, adapt).use { opened ->
                Caller(opened.session, component).run(sample.inputs).forEach(Tensor::close)
                opened.session.endProfiling()
            }
        return read(File(written))
    }

    private fun read(file: File): Map<String, Int> {
        val events = Json.parse(file.readText()) as? List<*> ?: return emptyMap()
        val counts = HashMap<String, Int>()
        for (event in events.filterIsInstance<Map<*, *>>()) {
            val provider = (event["args"] as? Map<*, *>)?.get("provider") as? String ?: continue
            if (event["cat"] == "Node" && event["name"].toString().endsWith(KERNEL)) counts[provider] = (counts[provider] ?: 0) + 1
        }
        return counts
    }

    private companion object {
        /** How the runtime ends the names of the events in which a node's kernel runs. */
        const val KERNEL = "_kernel_time"
    }
}
