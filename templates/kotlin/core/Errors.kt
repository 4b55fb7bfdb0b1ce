package bundler.loader

/**
 * What can go wrong. The message says what happened, why, and what to do next.
 *
 * @property what one sentence on what happened
 * @property why the evidence; empty where there is none
 * @property next what to do; empty where nothing helps
 */
public sealed class BundleException(
    public val what: String,
    public val why: String,
    public val next: String,
    cause: Throwable?,
) : Exception(
        listOf(what, if (why.isEmpty()) "" else "  why:  $why", if (next.isEmpty()) "" else "  next: $next")
            .filter { it.isNotEmpty() }
            .joinToString("\n"),
        cause,
    )

/** A file of the bundle is missing or does not match its checksum. */
public class IntegrityException(what: String, why: String = "", next: String = REBUILD, cause: Throwable? = null) :
    BundleException(what, why, next, cause)

/** No variant of the bundle can run here. */
public class IncompatibleException(what: String, why: String = "", next: String = "", cause: Throwable? = null) :
    BundleException(what, why, next, cause)

/** Strict mode: the preferred variant cannot run here, and no other is allowed. */
public class FallbackException(what: String, why: String = "", next: String = "", cause: Throwable? = null) :
    BundleException(what, why, next, cause)

/** An input or an argument has the wrong name, type or shape. */
public class InputException(what: String, why: String = "", next: String = "", cause: Throwable? = null) :
    BundleException(what, why, next, cause)

/** The bundle, the model, the stream or the tensor was closed. */
public class ClosedException(what: String, why: String = "", next: String = "", cause: Throwable? = null) :
    BundleException(what, why, next, cause)

/** The runtime failed while the model ran. */
public class InferenceException(what: String, why: String = "", next: String = "", cause: Throwable? = null) :
    BundleException(what, why, next, cause)

/** The model does not reproduce its golden set here. */
public class SelfTestException(what: String, why: String = "", next: String = "", cause: Throwable? = null) :
    BundleException(what, why, next, cause)

internal const val REBUILD: String = "install the bundle again from a copy that you trust"

/** The first line of what the runtime says of a failure, at most 300 characters. */
internal fun firstLine(error: Throwable): String =
    (error.message ?: error.javaClass.simpleName).lineSequence().first().take(300)
