package bundler.loader

import ai.onnxruntime.OrtEnvironment
import ai.onnxruntime.OrtException
import ai.onnxruntime.OrtSession.SessionOptions

/** A variant with an open session. */
internal class OpenVariant(val config: VariantConfig, val session: OpenSession, val nodes: Map<String, Int>)

/** A variant that was tried: open, or with the reason why it cannot run. */
internal class Tried(val opened: OpenVariant?, val reason: String)

/** Opens variants, and says why those that cannot run here do not. */
internal class VariantOpener(
    private val environment: OrtEnvironment,
    private val host: Host,
    private val payload: Payload,
    private val options: OpenOptions,
    private val checks: Checks,
) {
    private val files = ModelFiles(payload, host)
    private val sessions = SessionFactory(environment, host, options)

    /** Throws [IntegrityException] for a file that does not match its checksum. */
    fun open(component: ComponentConfig, variant: VariantConfig): Tried {
        val obstacle = findObstacle(variant)
        if (obstacle != null) return Tried(null, obstacle)
        tell(component, OpenProgress.Step.VERIFYING, variant)
        if (variant.preparation != null) return openPrepared(component, variant)
        check(variant)
        tell(component, OpenProgress.Step.LOADING, variant)
        return tryToOpen { start(component, variant) }
    }

    private fun openPrepared(component: ComponentConfig, variant: VariantConfig): Tried {
        val prepared = prepared(component, variant)
        val thing = variant.preparation?.thing
        val model =
            try {
                prepared.find()
            } catch (error: IntegrityException) {
                return Tried(null, "its $thing was altered (${error.what}); call prewarm() to generate it again")
            }
        val refusal = prepared.findRefusal().ifEmpty { "its $thing has not been generated on this device yet; call prewarm()" }
        if (model == null) return Tried(null, refusal)
        tell(component, OpenProgress.Step.LOADING, variant)
        return tryToOpen { Tried(OpenVariant(variant, openSource(variant, ModelSource.OnDisk(model)), emptyMap()), "") }
    }

    private inline fun tryToOpen(start: () -> Tried): Tried =
        try {
            start()
        } catch (error: OrtException) {
            Tried(null, "the runtime could not open it (${firstLine(error)})")
        } catch (error: IncompatibleException) {
            Tried(null, listOf(error.what, error.why).filter { it.isNotEmpty() }.joinToString(": "))
        }

    /** Throws [IntegrityException] for a file of the variant that does not match its checksum. */
    fun check(variant: VariantConfig) = variant.files.forEach(checks::check)

    fun locate(variant: VariantConfig): ModelSource = files.locate(variant)

    fun prepared(component: ComponentConfig, variant: VariantConfig) =
        Prepared(variant, "${component.name}/${variant.name}", host, environment.version)

    /** A session on the variant's settings and a model of the caller's. Throws [OrtException]. */
    fun openSource(variant: VariantConfig, source: ModelSource): OpenSession = sessions.open(variant, source)

    /** Nodes by provider, of a session that [adapt] changes and one run of it; null where that cannot be told. */
    fun countNodes(component: ComponentConfig, variant: VariantConfig, source: ModelSource, adapt: (SessionOptions) -> Unit = {}) =
        Assignment(sessions, payload, host).count(component, variant, source, adapt)

    fun tell(component: ComponentConfig, step: OpenProgress.Step, variant: VariantConfig?) {
        options.progress?.invoke(OpenProgress(component.name, step, variant?.name))
    }

    private fun start(component: ComponentConfig, variant: VariantConfig): Tried {
        val source = files.locate(variant)
        val nodes = if (variant.leastShare > 0) countNodes(component, variant, source) else null
        val flaw = nodes?.let { findShortfall(variant, it) }
        if (flaw != null) return Tried(null, flaw)
        return Tried(OpenVariant(variant, sessions.open(variant, source), nodes.orEmpty()), "")
    }

    /** Why the assignment is not enough; null where it is. */
    fun findShortfall(variant: VariantConfig, nodes: Map<String, Int>): String? {
        val first = variant.providers.first().name
        val all = nodes.values.sum()
        val taken = nodes[first] ?: 0
        val least = if (variant.requires.compiled == null) variant.leastShare else Double.MIN_VALUE
        if (all == 0) return "the nodes that $first is assigned cannot be counted: there is no private folder for a trace"
        if (taken > 0 && taken >= least * all) return null
        return "$taken of $all nodes are assigned to $first (min ${Math.round(least * 100)}%)"
    }

    /** Why the variant cannot run here, as far as that is known before it is opened. */
    fun findObstacle(variant: VariantConfig): String? {
        val requires = variant.requires
        val available = OrtEnvironment.getAvailableProviders().map { it.getName() }
        val missing = variant.providers.map { it.name }.filter { it !in available && host.findPlugin(it) == null }
        return when {
            missing.isNotEmpty() -> "the runtime here has no ${missing.joinToString(" and no ")}"
            variant.preparation?.kind == "cache" ->
                "its ${variant.preparation.thing} is generated on the device, which this loader does not do"
            host.standsIn -> null
            requires.systems.isNotEmpty() && requires.systems.none { it in host.systems } ->
                "it is for ${requires.systems.joinToString(" or ")}, this is ${host.systems.first()}"
            requires.machines.isNotEmpty() && requires.machines.none { it in host.machines } ->
                "it is for ${requires.machines.joinToString(" or ")}, this is ${host.machines.firstOrNull() ?: "unknown"}"
            requires.runtime != environment.version ->
                "it was built for onnxruntime ${requires.runtime}; found ${environment.version}"
            else -> findOtherChip(requires.compiled)
        }
    }

    /** A chip may be sold with a suffix: an `SM8650P` is an `SM8650`. Where a system tells no name, the runtime decides. */
    private fun findOtherChip(compiled: CompiledFor?): String? {
        val chip = host.chip
        if (chip == null || compiled == null || compiled.names.isEmpty()) return null
        if (compiled.names.any { chip.startsWith(it, ignoreCase = true) }) return null
        return "it was compiled for ${compiled.names.joinToString(" or ")}, this chip is ${chip.take(40)}"
    }

    /** What a user should know of a variant that runs. */
    fun listRemarks(variant: VariantConfig): List<String> {
        if (!host.standsIn) return emptyList()
        val wanted = "${variant.requires.systems.joinToString(" or ")} with onnxruntime ${variant.requires.runtime}"
        return listOf("this machine runs it in place of $wanted, with onnxruntime ${environment.version}")
    }
}

/** The error for variants that cannot run here, each with its reason. */
internal fun refuseAll(model: String, rejected: Map<String, String>, strict: Boolean): BundleException {
    val why = rejected.entries.joinToString("; ") { "${it.key}: ${it.value}" }
    if (strict) {
        val first = rejected.keys.first()
        return FallbackException(
            "$model: variant $first cannot run here, and strict mode allows no other",
            why = why,
            next = "remove the cause, or open the bundle with strict = false",
        )
    }
    return IncompatibleException(
        "$model: no variant can run here",
        why = why,
        next = "build the bundle for this system, or use the runtime that it names",
    )
}
