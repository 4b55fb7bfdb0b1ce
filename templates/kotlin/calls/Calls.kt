@file:JvmName("Calls")

package bundler.calls

import java.io.File
import kotlin.system.exitProcess

/**
 * `REQUEST`: calls the classes of the bundle on the class path as an app does, with recorded samples, and prints by
 * component the variant that ran and why its class answers otherwise than the model that the self-test runs (nothing: it
 * does not). Where the bundle does not open, it prints why. The outputs of each class go into folders that REQUEST names.
 *
 * REQUEST is a file with the names that the classes must have, as JSON. Every bundle has its own package, so that all of it
 * is called by reflection.
 */
public fun main(arguments: Array<String>) {
    val output = System.out
    System.setOut(System.err) // what the bundle says is no part of this report
    val request = JsonObject.parse(File(arguments.single()).readText())
    output.println(Json.write(callAll(request)))
    output.flush()
    exitProcess(0)
}

/** The model runs first and is closed: there is never more than one in memory. */
private fun callAll(request: JsonObject): Map<String, Any?> {
    val components = request.child("components")
    val loader: Loader
    val answers =
        try {
            loader = Loader(request)
            loader.openDirectly().use { direct -> components.keys.associateWith { ask(loader, it, components.child(it), direct) } }
        } catch (error: Throwable) {
            return mapOf("unopened" to explain(error))
        }
    val faults = answers.mapValues { mutableListOf<String>() }
    fun check(how: String, open: () -> AutoCloseable, check: (ComponentCalls, Any) -> String) {
        val fault = attempt {
            open().use { bundle -> answers.forEach { (name, answer) -> faults.getValue(name).add(attempt { check(answer, bundle) }) } }
            ""
        }
        if (fault.isNotEmpty()) faults.values.forEach { it.add("$how: $fault") }
    }
    check("openBlocking", loader::openBlocking) { answer, bundle ->
        answer.checkCalls(bundle).ifEmpty { answer.bring(loader, bundle, answer.variant) }
    }
    check("open", loader::open, ComponentCalls::checkModel)
    for ((name, answer) in answers) {
        for (variant in answer.others) {
            val fault = attempt { loader.openVariant(name, variant).use { answer.bring(loader, it, variant) } }
            if (fault.isNotEmpty()) faults.getValue(name).add("variant $variant: $fault")
        }
    }
    val calls = answers.mapValues { (name, answer) ->
        mapOf("variant" to answer.variant, "fault" to faults.getValue(name).firstOrNull { it.isNotEmpty() }.orEmpty())
    }
    return mapOf("calls" to calls)
}

/** Runs the code of the bundle, which may throw anything; returns the fault that it found, or the error. */
private fun attempt(work: () -> String): String =
    try {
        work()
    } catch (error: Throwable) {
        explain(error)
    }

private fun explain(error: Throwable): String {
    val said = error.message.orEmpty().lineSequence().first().take(300)
    return if (error is Fault) said else "${error.javaClass.simpleName}: $said"
}

/** What is wrong with a class, in the words of its message. */
internal class Fault(message: String) : Exception(message)
