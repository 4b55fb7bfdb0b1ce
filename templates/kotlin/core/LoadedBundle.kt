package bundler.loader

import ai.onnxruntime.OrtEnvironment
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import java.util.concurrent.atomic.AtomicBoolean

/** An open bundle: its models, each on the first of its variants that can run here. */
public class LoadedBundle private constructor(private val models: Map<String, LoadedModel>) : AutoCloseable {
    /** What the loader did, by the name of the model. */
    public val report: Map<String, LoadReport> get() = models.mapValues { it.value.report }

    /** A model by its name. Throws [InputException] for one that was not opened. */
    public fun model(name: String): LoadedModel =
        models[name] ?: throw InputException("no model $name is open", next = "open it: the open ones are ${models.keys.joinToString(", ")}")

    /** Reproduce the golden set of every open model. Throws [IntegrityException] where one was altered. */
    public suspend fun selfTest(): List<SelfTest> = models.values.map { it.selfTest() }

    /** As [selfTest], on this thread. */
    public fun selfTestBlocking(): List<SelfTest> = models.values.map { it.selfTestBlocking() }

    /** Free all models, after the calls that run. */
    override fun close() {
        models.values.forEach(LoadedModel::close)
    }

    override fun toString(): String = models.values.joinToString(", ")

    public companion object {
        /**
         * Open the bundle in [payload], whose `runtime.json` has the SHA-256 [configSha256], on other threads than the
         * caller's. The models open at the same time.
         *
         * Throws [IntegrityException] for a file that does not match its checksum, [FallbackException] in strict mode,
         * [IncompatibleException] where no variant of a model can run here.
         */
        public suspend fun open(payload: Payload, host: Host, configSha256: String, options: OpenOptions = OpenOptions()): LoadedBundle {
            var opened: LoadedBundle? = null
            try {
                return withContext(Dispatchers.Default) {
                    LoadedBundle(BundleOpener(payload, host, configSha256, options).open()).also { opened = it }
                }
            } catch (error: CancellationException) {
                opened?.close() // cancelled on the way back: nobody has it
                throw error
            }
        }

        /**
         * Generate what variants of the bundle need on this device, such as an NPU's context, hold it to the golden set, and
         * keep it for later starts; what is there already stays. It may take minutes. Throws [IntegrityException] where the
         * bundle was altered.
         */
        public suspend fun prewarm(
            payload: Payload,
            host: Host,
            configSha256: String,
            options: OpenOptions = OpenOptions(),
        ): List<Prewarmed> = withContext(Dispatchers.Default) { BundleOpener(payload, host, configSha256, options).prewarm() }

        /** As [open], on this thread and its helpers: not on the main thread of an app. */
        @JvmStatic
        @JvmOverloads
        public fun openBlocking(payload: Payload, host: Host, configSha256: String, options: OpenOptions = OpenOptions()): LoadedBundle =
            runBlocking { open(payload, host, configSha256, options) }
    }
}

/** Opens the models of one bundle. */
internal class BundleOpener(
    private val payload: Payload,
    private val host: Host,
    configSha256: String,
    private val options: OpenOptions,
) {
    private val checks = Checks(payload, host, options.verify)
    val config: BundleConfig
    private val opener: VariantOpener

    init {
        val text = checks.readPinned(BundleConfig.PATH, configSha256)
        config = BundleConfig.read(String(text, Charsets.UTF_8))
        if (PREPARED.compareAndSet(false, true)) {
            if (!config.telemetry) host.silence()
            host.prepare()
        }
        opener = VariantOpener(openEnvironment(), host, payload, options, checks)
    }

    suspend fun open(): Map<String, LoadedModel> {
        val chosen = config.components.filter { options.only == null || it.name in options.only }
        val missing = options.only.orEmpty() - config.components.map { it.name }.toSet()
        if (missing.isNotEmpty()) throw InputException("the bundle has no model ${missing.first()}")
        val (bound, free) = chosen.partition { it.name in config.together }
        val opened = ArrayList<LoadedModel>()
        try {
            coroutineScope {
                val groups = free.map { listOf(it) } + listOf(bound).filter { it.isNotEmpty() }
                groups.map { group -> async { openGroup(group).also { synchronized(opened) { opened.addAll(it) } } } }.awaitAll()
            }
        } catch (error: Throwable) {
            synchronized(opened) { opened.forEach(LoadedModel::close) }
            throw error
        }
        checks.save()
        return chosen.associate { component -> component.name to opened.first { it.name == component.name } }
    }

    suspend fun prewarm(): List<Prewarmed> {
        val prewarmer = Prewarmer(opener, payload, host)
        val chosen = config.components.filter { options.only == null || it.name in options.only }
        return chosen.flatMap { component ->
            component.variants.mapNotNull { variant ->
                currentCoroutineContext().ensureActive()
                prewarmer.prewarm(component, variant)
            }
        }.also { checks.save() }
    }

    /** One variant of one model, and no other. Throws as [LoadedBundle.open]. */
    fun openVariant(component: ComponentConfig, variant: VariantConfig): Tried = opener.open(component, variant).also { checks.save() }

    /** A model on a variant that is open. */
    fun finish(component: ComponentConfig, opened: OpenVariant, rejected: Map<String, String>): LoadedModel {
        val providers = opened.config.providers.map { it.name }
        val report = LoadReport(opened.config.name, providers, rejected, opened.nodes, opener.listRemarks(opened.config))
        opener.tell(component, OpenProgress.Step.READY, opened.config)
        return LoadedModel(component, opened, payload, report)
    }

    /** Models that belong together run on the variant of one name, or not at all; one alone is a group of its own. */
    private fun openGroup(group: List<ComponentConfig>): List<LoadedModel> {
        val strict = options.strict ?: config.strict
        val rejected = LinkedHashMap<String, String>()
        val names = group.first().variants.map { it.name }.filter { name -> group.all { one -> one.variants.any { it.name == name } } }
        for (name in names) {
            val tried = group.map { component -> opener.open(component, component.variants.first { it.name == name }) }
            if (tried.all { it.opened != null }) {
                return group.zip(tried) { component, found -> finish(component, checkNotNull(found.opened), rejected.toMap()) }
            }
            tried.forEach { it.opened?.session?.close() }
            rejected[name] = group.zip(tried).filter { it.second.opened == null }.joinToString("; ") { (component, found) ->
                if (group.size == 1) found.reason else "${component.name}: ${found.reason}"
            }
            opener.tell(group.first(), OpenProgress.Step.REJECTED, group.first().variants.first { it.name == name })
            if (strict) break
        }
        throw refuseAll(group.joinToString(" and ") { it.name }, rejected, strict && names.size > 1)
    }

    private fun openEnvironment(): OrtEnvironment {
        val environment = OrtEnvironment.getEnvironment()
        environment.setTelemetry(config.telemetry)
        return environment
    }

    private companion object {
        val PREPARED = AtomicBoolean(false)
    }
}
