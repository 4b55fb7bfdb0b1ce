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

    private fun printEach(work: (Trial, Opened) -> Map<String, Any?>): Int {
        val opener = BundleOpener(payload, host, sha256, options)
        val trials = opener.config.components.flatMap { component -> component.variants.map { Trial(opener, component, it) } }
        val outcomes = trials.map { trial ->
            val opened = trial.open()
            if (opened == null) trial.describe("unavailable", "reason" to trial.reason) else opened.model.use { work(trial, opened) }
        }
        println(Json.write(mapOf("variants" to outcomes)))
        return if (outcomes.any { it["status"] == "failed" }) 1 else 0
    }

    private fun test(trial: Trial, opened: Opened): Map<String, Any?> {
        val start = System.nanoTime()
        val result = opened.model.selfTestBlocking()
        val figures = mapOf("opening_seconds" to opened.seconds, "golden_seconds" to (System.nanoTime() - start) / 1e9)
        return trial.describe(if (result.passed) "passed" else "failed") + result.toMap() + ("figures" to figures)
    }

    /** A third of the time goes to loading the model again and again, each time with its first inference. */
    private fun time(trial: Trial, opened: Opened): Map<String, Any?> {
        val loads = ArrayList<Double>()
        val end = System.nanoTime() + (seconds * LOADING * 1e9).toLong()
        do {
            val again = checkNotNull(trial.open()) { trial.reason }
            loads.add(again.seconds + again.model.use { it.benchmarkBlocking(0.0).first } / 1000)
        } while (System.nanoTime() < end && loads.size < MAX_LOADS)
        val found = opened.model.benchmarkBlocking(seconds * (1 - LOADING))
        return trial.describe(
            "passed",
            "first_answer_seconds" to loads,
            "latency_seconds" to found.milliseconds.map { it / 1000 },
        )
    }

    private fun option(name: String): String? = arguments.indexOf(name).takeIf { it >= 0 }?.let { arguments.getOrNull(it + 1) }

    private fun usage(): Int {
        System.err.println("usage: info | self-test | bench [--json] [--strict] [--threads N] [--seconds S]")
        return 2
    }

    private companion object {
        const val LOADING = 1.0 / 3
        const val MAX_LOADS = 30
    }
}

/** A model that was opened, and how long that took. */
private class Opened(val model: LoadedModel, val seconds: Double)

/** One variant of one model, which can be opened again and again. */
private class Trial(
    private val opener: BundleOpener,
    private val component: ComponentConfig,
    private val variant: VariantConfig,
) {
    /** Why it could not be opened. */
    var reason = ""
        private set

    fun open(): Opened? {
        val start = System.nanoTime()
        val tried = opener.openVariant(component, variant)
        reason = tried.reason
        val opened = tried.opened ?: return null
        val model = opener.finish(component, opened, emptyMap())
        return Opened(model, (System.nanoTime() - start) / 1e9)
    }

    fun describe(status: String, vararg facts: Pair<String, Any?>): Map<String, Any?> =
        linkedMapOf<String, Any?>("component" to component.name, "variant" to variant.name, "status" to status) + facts
}
