package bundler.loader

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.TestFactory
import java.io.File
import java.util.Base64
import kotlin.math.abs

/** The figures are those of Python, on the vectors that every loader reads. */
class FiguresTest {
    @TestFactory
    fun figures(): List<DynamicTest> {
        val cases = Json.parse(File(System.getProperty("vectors")).readText()) as List<*>
        return cases.map { case ->
            @Suppress("UNCHECKED_CAST")
            val data = JsonObject(case as Map<String, Any?>)
            DynamicTest.dynamicTest(data.text("name")) { check(data) }
        }
    }

    private fun check(case: JsonObject) {
        for (gate in case.objects("gates").ifEmpty { listOf(JsonObject(mapOf("within" to null))) }) {
            val tolerance = Tolerance(gate.childOrNull("tolerance"))
            val found = OutputFigures("output", Reference(case.child("reference")))
            for (sample in case.objects("samples")) {
                found.add(tensor(sample.child("actual")), tensor(sample.child("reference")), tolerance, "a sample")
            }
            assertEquals(case.flag("mismatch"), found.mismatch != null, "mismatch: ${found.mismatch}")
            if (gate.has("within")) assertEquals(gate.flag("within"), found.findFault(tolerance) == null, found.findFault(tolerance))
            if (!case.flag("mismatch")) compare(case.child("figures"), found.toMap(judged = true))
        }
    }

    private fun compare(expected: JsonObject, found: Map<String, Any?>) {
        for (name in expected.keys) {
            when (val wanted = expected.raw(name)) {
                is Number -> {
                    val value = found[name] as Number
                    val error = abs(value.toDouble() - wanted.toDouble())
                    assertTrue(error <= 1e-12 * abs(wanted.toDouble()), "$name is $value, not $wanted")
                }
                else -> assertEquals(wanted, found[name], name)
            }
        }
    }

    private fun tensor(data: JsonObject): Tensor {
        val shape = data.list("dims").map { it as Long }.toLongArray()
        val type = data.text("type")
        if (type == "str") return Tensor.strings(data.texts("values").toTypedArray(), *shape)
        return Tensor.of(ElementType.of(type), *shape).also { it.bytes().put(Base64.getDecoder().decode(data.text("base64"))) }
    }
}
