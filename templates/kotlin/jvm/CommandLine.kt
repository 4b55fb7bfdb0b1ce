package bundler.loader

import kotlin.system.exitProcess

/**
 * The command line of a bundle: `info`, `self-test` and `bench`. With `--json` it prints one JSON document with every
 * variant of every model, each tried by itself: `passed`, `failed`, or `unavailable` with the reason.
 *
 * It ends the process: with 0, with 1 where a model does not reproduce its golden set, with 2 for a command that does not
 * exist, and with 3 where the bundle cannot be opened.
 */
public fun runCommand(arguments: Array<String>, payload: Payload, configSha256: String) {
    try {
        exitProcess(CommandLine(arguments.toList(), payload, configSha256).run())
    } catch (error: BundleException) {
        if ("--json" in arguments) {
            println(Json.write(mapOf("error" to mapOf("message" to error.what, "why" to error.why))))
        } else {
            System.err.println("error: ${error.message}")
        }
        exitProcess(3)
    }
}

private class CommandLine(private val arguments: List<String>, private val payload: Payload, private val sha256: String) {
    private val json = "--json" in arguments
    private val seconds = option("--seconds")?.toDoubleOrNull() ?: 3.0
    private val options = OpenOptions(
        strict = if ("--strict" in arguments) true else null,
        threads = option("--threads")?.toIntOrNull(),
        verify = if (json) Verify.ALWAYS else Verify.ONCE,
    )
    private val host = JvmHost(standsIn = "--stand-in" in arguments)

    fun run(): Int =
        when (arguments.firstOrNull()) {
            "info" -> open { bundle -> bundle.report.forEach { (name, report) -> println("$name: $report") } }
            "self-test" -> if (json) printEach(::test) else open(::printTests)
            "bench" -> if (json) printEach(::time) else open(::printTimes)
            else -> usage()
        }

    private fun open(work: (LoadedBundle) -> Unit): Int {
        LoadedBundle.openBlocking(payload, host, sha256, options).use(work)
        return 0
    }

    private fun printTests(bundle: LoadedBundle) {
        val results = bundle.selfTestBlocking()
        results.forEach { println("$it\n${it.report}") }
        if (!results.all { it.passed }) exitProcess(1)
    }

    private fun printTimes(bundle: LoadedBundle) {
        for (name in bundle.report.keys) println(bundle.model(name).benchmarkBlocking(seconds))
    }

    private fun printEach(work: (LoadedModel, Double) -> Map<String, Any?>): Int {
        val opener = BundleOpener(payload, host, sha256, options)
        val outcomes = opener.config.components.flatMap { component ->
            component.variants.map { tryVariant(opener, component, it, work) }
        }
        println(Json.write(mapOf("variants" to outcomes)))
        return if (outcomes.any { it["status"] == "failed" }) 1 else 0
    }

    private fun tryVariant(
        opener: BundleOpener,
        component: ComponentConfig,
        variant: VariantConfig,
        work: (LoadedModel, Double) -> Map<String, Any?>,
    ): Map<String, Any?> {
        val start = System.nanoTime()
        val tried = opener.openVariant(component, variant)
        val opened = tried.opened ?: return linkedMapOf(
            "component" to component.name,
            "variant" to variant.name,
            "status" to "unavailable",
            "reason" to tried.reason,
        )
        val loading = (System.nanoTime() - start) / 1e9
        return opener.finish(component, opened, emptyMap()).use { work(it, loading) }
    }

    private fun test(model: LoadedModel, loading: Double): Map<String, Any?> {
        val start = System.nanoTime()
        val result = model.selfTestBlocking().toMap()
        val figures = mapOf("opening_seconds" to loading, "golden_seconds" to (System.nanoTime() - start) / 1e9)
        return result + ("figures" to figures)
    }

    private fun time(model: LoadedModel, loading: Double): Map<String, Any?> {
        val found = model.benchmarkBlocking(seconds)
        return linkedMapOf(
            "component" to found.model,
            "variant" to found.variant,
            "status" to "passed",
            "first_answer_seconds" to listOf(loading + found.first / 1000),
            "latency_seconds" to found.milliseconds.map { it / 1000 },
        )
    }

    private fun option(name: String): String? = arguments.indexOf(name).takeIf { it >= 0 }?.let { arguments.getOrNull(it + 1) }

    private fun usage(): Int {
        System.err.println("usage: info | self-test | bench [--json] [--strict] [--threads N] [--seconds S]")
        return 2
    }
}
