package bundler.loader

import ai.onnxruntime.OrtEnvironment
import ai.onnxruntime.OrtException

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
        variant.files.forEach(checks::check)
        tell(component, OpenProgress.Step.LOADING, variant)
        return try {
            start(component, variant)
        } catch (error: OrtException) {
            Tried(null, "the runtime could not open it (${firstLine(error)})")
        } catch (error: IncompatibleException) {
            Tried(null, listOf(error.what, error.why).filter { it.isNotEmpty() }.joinToString(": "))
        }
    }

    fun tell(component: ComponentConfig, step: OpenProgress.Step, variant: VariantConfig?) {
        options.progress?.invoke(OpenProgress(component.name, step, variant?.name))
    }

    private fun start(component: ComponentConfig, variant: VariantConfig): Tried {
        val source = files.locate(variant)
        val nodes = if (variant.leastShare > 0) Assignment(sessions, payload, host).count(component, variant, source) else null
        val flaw = nodes?.let { findShortfall(variant, it) }
        if (flaw != null) return Tried(null, flaw)
        return Tried(OpenVariant(variant, sessions.open(variant, source), nodes.orEmpty()), "")
    }

    private fun findShortfall(variant: VariantConfig, nodes: Map<String, Int>): String? {
        val first = variant.providers.first().name
        val all = nodes.values.sum()
        val taken = nodes[first] ?: 0
        val least = if (variant.requires.compiled == null) variant.leastShare else Double.MIN_VALUE
        if (all > 0 && taken > 0 && taken >= least * all) return null
        return "$taken of $all nodes are assigned to $first, at least ${Math.round(least * 100)}% required"
    }

    /** Why the variant cannot run here, as far as that is known before it is opened. */
    fun findObstacle(variant: VariantConfig): String? {
        val requires = variant.requires
        val available = OrtEnvironment.getAvailableProviders().map { it.getName() }
        val missing = variant.providers.map { it.name }.filter { it !in available && host.findPlugin(it) == null }
        return when {
            missing.isNotEmpty() -> "the runtime here has no ${missing.joinToString(" and no ")}"
            variant.preparation != null -> "its ${variant.preparation} is generated on the device, which this loader does not do"
            host.standsIn -> null
            requires.systems.isNotEmpty() && requires.systems.none { it in host.systems } ->
                "it is for ${requires.systems.joinToString(" or ")}, this is ${host.systems.first()}"
            requires.machines.isNotEmpty() && requires.machines.none { it in host.machines } ->
                "it is for ${requires.machines.joinToString(" or ")}, this is ${host.machines.firstOrNull() ?: "unknown"}"
            requires.runtime != environment.version ->
                "it was built for onnxruntime ${requires.runtime}, here is ${environment.version}"
            else -> null
        }
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
