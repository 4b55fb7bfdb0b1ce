package bundler.loader

import ai.onnxruntime.OrtEnvironment
import ai.onnxruntime.OrtException
import ai.onnxruntime.OrtLoggingLevel
import ai.onnxruntime.OrtSession
import ai.onnxruntime.OrtSession.SessionOptions
import ai.onnxruntime.providers.NNAPIFlags
import java.io.File
import java.nio.ByteBuffer
import java.util.EnumSet

/** A session, with what must live as long as it: the memory of its model. */
internal class OpenSession(val session: OrtSession, @Suppress("unused") private val memory: ByteBuffer?) : AutoCloseable {
    override fun close() = session.close()
}

/** Makes sessions as `runtime.json` describes them, and as a user's options change them. */
internal class SessionFactory(
    private val environment: OrtEnvironment,
    private val host: Host,
    private val options: OpenOptions,
) {
    /**
     * A session on the variant's model, from a file or from memory. Throws [OrtException], and [IncompatibleException]
     * for an option that the runtime's Java API cannot set.
     */
    fun open(variant: VariantConfig, source: ModelSource, adapt: (SessionOptions) -> Unit = {}): OpenSession =
        SessionOptions().use { session ->
            applySession(session, variant)
            for ((key, value) in adjustEntries(variant, source)) session.addConfigEntry(key, value)
            for (provider in variant.providers) addProvider(session, provider)
            adapt(session)
            when (source) {
                is ModelSource.OnDisk -> OpenSession(environment.createSession(source.file.path, session), null)
                is ModelSource.InMemory -> OpenSession(environment.createSession(source.bytes, session), source.bytes)
            }
        }

    private fun applySession(session: SessionOptions, variant: VariantConfig) {
        for ((key, value) in variant.session.asTexts()) applyAttribute(session, key, value, variant)
        options.threads?.let(session::setIntraOpNumThreads)
    }

    private fun applyAttribute(session: SessionOptions, key: String, value: String, variant: VariantConfig) {
        when (key) {
            "graph_optimization_level" -> session.setOptimizationLevel(LEVELS[value] ?: throw unknown(variant, key, value))
            "execution_mode" -> session.setExecutionMode(MODES[value] ?: throw unknown(variant, key, value))
            "intra_op_num_threads" -> session.setIntraOpNumThreads(value.toInt())
            "inter_op_num_threads" -> session.setInterOpNumThreads(value.toInt())
            "enable_mem_pattern" -> session.setMemoryPatternOptimization(value.toBooleanStrict())
            "enable_cpu_mem_arena" -> session.setCPUArenaAllocator(value.toBooleanStrict())
            "log_severity_level" -> if (value.toInt() >= 0) session.setSessionLogLevel(OrtLoggingLevel.mapFromInt(value.toInt()))
            "log_verbosity_level" -> if (value.toInt() >= 0) session.setSessionLogVerbosityLevel(value.toInt())
            "logid" -> session.setLoggerId(value)
            "use_deterministic_compute" -> session.setDeterministicCompute(value.toBooleanStrict())
            else -> throw unknown(variant, key, value)
        }
    }

    private fun unknown(variant: VariantConfig, key: String, value: String) =
        IncompatibleException("variant ${variant.name} sets $key = $value, which the runtime's Java API cannot do")

    /** The configuration entries: those of the bundle, with the user's number of threads and spinning. */
    private fun adjustEntries(variant: VariantConfig, source: ModelSource): Map<String, String> {
        val entries = LinkedHashMap(variant.sessionConfig)
        if (variant.disabledOptimizers.isNotEmpty()) {
            entries[DISABLED_OPTIMIZERS] = variant.disabledOptimizers.joinToString(";")
        }
        options.spinning?.let { spinning -> SPINNING.forEach { entries[it] = if (spinning) "1" else "0" } }
        if (options.threads != null) entries.remove(AFFINITIES)
        if (source is ModelSource.InMemory && source.isOrtFormat) {
            entries["session.use_ort_model_bytes_directly"] = "1"
            entries["session.use_ort_model_bytes_for_initializers"] = "1"
        }
        return entries
    }

    private fun addProvider(session: SessionOptions, provider: Provider) {
        val given = provider.options.mapValues { (key, value) ->
            if (key in PROVIDER_THREADS) options.threads?.toString() ?: value else value
        }
        when {
            provider.isPlugin || findPlugin(provider) != null -> addPlugin(session, provider, given)
            provider.name == "CPUExecutionProvider" -> return
            provider.name == "XnnpackExecutionProvider" -> session.addXnnpack(given)
            provider.name == "NnapiExecutionProvider" -> session.addNnapi(nnapiFlags(given))
            provider.name == "QNNExecutionProvider" -> session.addQnn(given)
            provider.name == "WebGpuExecutionProvider" -> session.addWebGPU(given)
            provider.name == "CUDAExecutionProvider" && given.isEmpty() -> session.addCUDA()
            else -> throw IncompatibleException("the runtime's Java API has no ${provider.name} with options")
        }
    }

    private fun findPlugin(provider: Provider): File? =
        if (provider.name == "CPUExecutionProvider") null else host.findPlugin(provider.name)

    private fun addPlugin(session: SessionOptions, provider: Provider, given: Map<String, String>) {
        val library = findPlugin(provider) ?: throw IncompatibleException("the plugin of ${provider.name} is not here")
        synchronized(REGISTERED) {
            if (REGISTERED.add(provider.name)) environment.registerExecutionProviderLibrary(provider.name, library.path)
        }
        val devices = environment.epDevices.filter { device ->
            device.epName == provider.name && provider.select.all { (key, value) -> device.epMetadata[key] == value }
        }
        if (devices.isEmpty()) throw IncompatibleException("no device of ${provider.name} is here")
        session.addExecutionProvider(devices.take(1), given)
    }

    private fun nnapiFlags(given: Map<String, String>): EnumSet<NNAPIFlags> {
        val flags = EnumSet.noneOf(NNAPIFlags::class.java)
        for ((key, value) in given) {
            val flag = NNAPI_FLAGS[key] ?: throw IncompatibleException("NNAPI has no flag $key")
            if (value == "1" || value == "true") flags.add(flag)
        }
        return flags
    }

    companion object {
        const val DISABLED_OPTIMIZERS = "optimization.disable_specified_optimizers"
        private const val AFFINITIES = "session.intra_op_thread_affinities"
        private val SPINNING = listOf("session.intra_op.allow_spinning", "session.inter_op.allow_spinning")
        private val PROVIDER_THREADS = setOf("intra_op_num_threads", "num_of_threads")
        private val REGISTERED = HashSet<String>()
        private val LEVELS = mapOf(
            "ORT_DISABLE_ALL" to SessionOptions.OptLevel.NO_OPT,
            "ORT_ENABLE_BASIC" to SessionOptions.OptLevel.BASIC_OPT,
            "ORT_ENABLE_EXTENDED" to SessionOptions.OptLevel.EXTENDED_OPT,
            "ORT_ENABLE_ALL" to SessionOptions.OptLevel.ALL_OPT,
        )
        private val MODES = mapOf(
            "ORT_SEQUENTIAL" to SessionOptions.ExecutionMode.SEQUENTIAL,
            "ORT_PARALLEL" to SessionOptions.ExecutionMode.PARALLEL,
        )
        private val NNAPI_FLAGS = mapOf(
            "useFP16" to NNAPIFlags.USE_FP16,
            "useNCHW" to NNAPIFlags.USE_NCHW,
            "cpuDisabled" to NNAPIFlags.CPU_DISABLED,
            "cpuOnly" to NNAPIFlags.CPU_ONLY,
        )
    }
}

/** Where the runtime reads a model from. */
internal sealed class ModelSource {
    /** A file of its own, beside which its other files are. */
    class OnDisk(val file: File) : ModelSource()

    /** Memory that outside of the session nothing may change. */
    class InMemory(val bytes: ByteBuffer, val isOrtFormat: Boolean) : ModelSource()
}
