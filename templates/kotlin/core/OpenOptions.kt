package bundler.loader

/** When the checksums of the bundle's files are compared. */
public enum class Verify {
    /** In full at the first start after an installation or an update; remembered from then on. */
    ONCE,

    /** In full at each start. */
    ALWAYS,
}

/**
 * How a bundle is opened.
 *
 * @property strict throw where the preferred variant cannot run, and never fall back; null: as the bundle says
 * @property threads threads inside one call (0: one a core); null: the bundle's own number
 * @property spinning whether idle threads spin instead of sleeping; null: the bundle's own choice
 * @property verify when checksums are compared
 * @property only the names of the models to open; null: all
 * @property progress gets what is done, from the threads that do it
 */
public class OpenOptions @JvmOverloads constructor(
    public val strict: Boolean? = null,
    public val threads: Int? = null,
    public val spinning: Boolean? = null,
    public val verify: Verify = Verify.ONCE,
    public val only: Set<String>? = null,
    public val progress: ((OpenProgress) -> Unit)? = null,
) {
    init {
        if (threads != null && threads !in 0..MAX_THREADS) {
            throw InputException("$threads is not a number of threads", next = "give 0 to $MAX_THREADS, or null for the number of the bundle")
        }
    }

    /** These options, whose progress goes to [listener], too. */
    internal fun reportTo(listener: (OpenProgress) -> Unit): OpenOptions {
        val own = progress
        return OpenOptions(strict, threads, spinning, verify, only) { step ->
            own?.invoke(step)
            listener(step)
        }
    }

    /** Options for Java: each method returns this builder. */
    public class Builder {
        private var strict: Boolean? = null
        private var threads: Int? = null
        private var spinning: Boolean? = null
        private var verify: Verify = Verify.ONCE
        private var only: Set<String>? = null

        /** See [OpenOptions.strict]. */
        public fun strict(value: Boolean): Builder = apply { strict = value }

        /** See [OpenOptions.threads]. */
        public fun threads(value: Int): Builder = apply { threads = value }

        /** See [OpenOptions.spinning]. */
        public fun spinning(value: Boolean): Builder = apply { spinning = value }

        /** See [OpenOptions.verify]. */
        public fun verify(value: Verify): Builder = apply { verify = value }

        /** See [OpenOptions.only]. */
        public fun only(vararg names: String): Builder = apply { only = names.toSet() }

        /** Throws [InputException]. */
        public fun build(): OpenOptions = OpenOptions(strict, threads, spinning, verify, only)
    }

    internal companion object {
        const val MAX_THREADS = 1024
    }
}

/**
 * What is being done while a bundle opens.
 *
 * @property model the name of the model
 * @property step what is done
 * @property variant the variant that it is done for; null before one is chosen
 */
public class OpenProgress internal constructor(
    public val model: String,
    public val step: Step,
    public val variant: String?,
) {
    /** The steps of opening, in order. */
    public enum class Step {
        /** The checksums of the variant's files are compared. */
        VERIFYING,

        /** The runtime loads the model. */
        LOADING,

        /** The device generates what the variant needs. */
        GENERATING,

        /** What was generated is held to the golden set. */
        TESTING,

        /** The variant was not used: the next is tried. */
        REJECTED,

        /** The model can be used. */
        READY,
    }

    override fun toString(): String = "$model: ${step.name.lowercase()}${variant?.let { " $it" } ?: ""}"
}
