package bundler.loader

import ai.onnxruntime.OrtException
import ai.onnxruntime.OrtSession.SessionOptions
import java.io.File
import java.io.IOException

/**
 * What became of a variant that needs something generated on this device.
 *
 * @property model the name of the model
 * @property variant the name of the variant
 * @property ready whether it can be opened from now on
 * @property reason why not
 * @property seconds how long it took
 */
public class Prewarmed internal constructor(
    public val model: String,
    public val variant: String,
    public val ready: Boolean,
    public val reason: String,
    public val seconds: Double,
) {
    override fun toString(): String = "$model, variant $variant: ${if (ready) "ready" else reason}"
}

/** It could not be generated. [lasting]: the device would do the same again. */
private class PrewarmFailure(message: String, val lasting: Boolean) : Exception(message)

/**
 * Generates what variants need on this device, holds it to the golden set, and keeps it for later starts.
 *
 * It is generated in a draft, which is renamed into place after it has reproduced the golden set: an interruption leaves
 * nothing that would be used. One thread of the process does it at a time.
 */
internal class Prewarmer(private val opener: VariantOpener, private val payload: Payload, private val host: Host) {
    /** Null for a variant that needs nothing. Throws [IntegrityException] where the bundle was altered. */
    fun prewarm(component: ComponentConfig, variant: VariantConfig): Prewarmed? {
        if (variant.preparation == null) return null
        val start = System.nanoTime()
        val reason = synchronized(TURN) { opener.findObstacle(variant) ?: makeUnlessReady(component, variant) }
        opener.tell(component, if (reason.isEmpty()) OpenProgress.Step.READY else OpenProgress.Step.REJECTED, variant)
        return Prewarmed(component.name, variant.name, reason.isEmpty(), reason, (System.nanoTime() - start) / 1e9)
    }

    private fun makeUnlessReady(component: ComponentConfig, variant: VariantConfig): String {
        val prepared = opener.prepared(component, variant)
        val known = prepared.findRefusal()
        if (known.isNotEmpty()) return known
        if (isReady(prepared)) return ""
        return try {
            make(component, variant, prepared)
            ""
        } catch (error: PrewarmFailure) {
            error.message.orEmpty()
        } catch (error: IncompatibleException) {
            error.what
        } catch (error: IOException) {
            "its ${variant.preparation?.thing} cannot be kept (${firstLine(error)})"
        }
    }

    private fun isReady(prepared: Prepared) =
        try {
            prepared.find() != null
        } catch (_: IntegrityException) {
            false // a damaged one is generated again
        }

    private fun make(component: ComponentConfig, variant: VariantConfig, prepared: Prepared) {
        val thing = variant.preparation?.thing
        opener.check(variant)
        val draft = prepared.startDraft()
        try {
            opener.tell(component, OpenProgress.Step.GENERATING, variant)
            generate(component, variant, draft)
            opener.tell(component, OpenProgress.Step.TESTING, variant)
            test(component, variant, draft)
            prepared.publish(draft)
        } catch (error: OrtException) {
            throw PrewarmFailure("the runtime could not generate its $thing (${firstLine(error)})", lasting = false)
        } catch (error: PrewarmFailure) {
            if (error.lasting) prepared.publish(draft.emptied(), error.message.orEmpty())
            throw error
        } finally {
            draft.deleteRecursively()
        }
    }

    /** A session with these settings compiles the model and writes it; one run of it tells which nodes it has taken. */
    private fun generate(component: ComponentConfig, variant: VariantConfig, draft: File) {
        val source = opener.locate(variant)
        val shortfall = opener.countNodes(component, variant, source) { write(it, variant, draft) }?.let { opener.findShortfall(variant, it) }
        if (shortfall != null) throw PrewarmFailure(shortfall, lasting = true)
        if (!File(draft, Prepared.MODEL).isFile) {
            throw PrewarmFailure("the runtime wrote no ${variant.preparation?.thing}", lasting = true)
        }
    }

    private fun write(options: SessionOptions, variant: VariantConfig, draft: File) {
        options.addConfigEntry("ep.context_enable", "1")
        options.addConfigEntry("ep.context_file_path", File(draft, Prepared.MODEL).path)
        options.addConfigEntry("ep.context_embed_mode", "0")
        if (variant.files.size > 1) options.addConfigEntry("ep.context_model_external_initializers_file_name", "weights.bin")
    }

    private fun test(component: ComponentConfig, variant: VariantConfig, draft: File) {
        opener.openSource(variant, ModelSource.OnDisk(File(draft, Prepared.MODEL))).use { opened ->
            val caller = Caller(opened.session, component)
            val report = LoadReport(variant.name, variant.providers.map { it.name }, emptyMap(), emptyMap(), emptyList())
            val result = GoldenTest(component, variant, payload).run(report) { inputs -> caller.run(inputs) }
            if (!result.passed) {
                throw PrewarmFailure("it does not reproduce the golden set: ${result.faults.joinToString("; ")}", lasting = true)
            }
        }
    }

    private fun File.emptied(): File = also { folder -> folder.listFiles()?.forEach(File::deleteRecursively) }

    private companion object {
        val TURN = Any()
    }
}
