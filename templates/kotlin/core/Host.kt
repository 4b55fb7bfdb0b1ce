package bundler.loader

import java.io.File

/** What a loader needs of the system that it runs on: a JVM, or an Android app. */
public interface Host {
    /** The names that `runtime.json` may give this system: `Linux`, `Android`. */
    public val systems: Set<String>

    /** The names that it may give this processor: `x86_64`, `aarch64`. */
    public val machines: Set<String>

    /** The chip, as the maker numbers it (`SM8650`); null where it is not known. */
    public val chip: String? get() = null

    /** Names the system's software; changes with each update of it. */
    public val software: String get() = ""

    /** A private folder for what is remembered and prepared; null where there is none. */
    public val store: File?

    /**
     * Whether this machine runs the bundle in place of the device that it was built for: then neither the system, nor
     * the processor, nor the exact version of the runtime must be the bundle's, and [LoadReport] says so.
     */
    public val standsIn: Boolean get() = false

    /** Turn the runtime's telemetry off. Called before a class of the runtime is loaded. */
    public fun silence()

    /** Make ready what the runtime's libraries need before they are loaded. Called once, after [silence]. */
    public fun prepare() {}

    /** The library of the provider's plugin; null where it is not there. */
    public fun findPlugin(provider: String): File? = null
}
