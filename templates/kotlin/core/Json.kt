package bundler.loader

import java.math.BigDecimal

/**
 * JSON as maps, lists, strings, numbers (Long or Double), booleans and null: what `runtime.json` and the golden set's
 * index need, so that a bundle depends on no library for it.
 */
internal object Json {
    private const val MAX_DEPTH = 64

    /** Throws [IllegalArgumentException] for text that is no JSON, or nested more than [MAX_DEPTH] levels. */
    fun parse(text: String): Any? {
        val reader = Reader(text)
        val value = reader.readValue(0)
        reader.expectEnd()
        return value
    }

    /** JSON on one line. Numbers that JSON lacks are written as the words `NaN`, `Infinity` and `-Infinity`. */
    fun write(value: Any?): String = StringBuilder().also { append(it, value) }.toString()

    private fun append(out: StringBuilder, value: Any?) {
        when (value) {
            null -> out.append("null")
            is Boolean, is Int, is Long -> out.append(value.toString())
            is Double -> if (value.isFinite()) out.append(value.toString()) else appendString(out, value.toString())
            is Map<*, *> -> appendAll(out, "{", "}", value.entries) { appendEntry(out, it) }
            is List<*> -> appendAll(out, "[", "]", value) { append(out, it) }
            else -> appendString(out, value.toString())
        }
    }

    private fun appendEntry(out: StringBuilder, entry: Map.Entry<*, *>) {
        appendString(out, entry.key.toString())
        out.append(":")
        append(out, entry.value)
    }

    private fun <T> appendAll(out: StringBuilder, open: String, close: String, items: Iterable<T>, each: (T) -> Unit) {
        out.append(open)
        items.forEachIndexed { position, item ->
            if (position > 0) out.append(",")
            each(item)
        }
        out.append(close)
    }

    private fun appendString(out: StringBuilder, text: String) {
        out.append('"')
        for (char in text) {
            when {
                char == '"' || char == '\\' -> out.append('\\').append(char)
                char < ' ' || char.code > 126 -> out.append("\\u").append(char.code.toString(16).padStart(4, '0'))
                else -> out.append(char)
            }
        }
        out.append('"')
    }

    private class Reader(private val text: String) {
        private var at = 0

        fun readValue(depth: Int): Any? {
            require(depth < MAX_DEPTH) { "it is nested more than $MAX_DEPTH levels" }
            skipSpace()
            return when (peek()) {
                '{' -> readObject(depth)
                '[' -> readArray(depth)
                '"' -> readString()
                't' -> readWord("true", true)
                'f' -> readWord("false", false)
                'n' -> readWord("null", null)
                else -> readNumber()
            }
        }

        fun expectEnd() {
            skipSpace()
            require(at == text.length) { "text follows the value at character $at" }
        }

        private fun readObject(depth: Int): Map<String, Any?> {
            val found = LinkedHashMap<String, Any?>()
            readItems('}') {
                skipSpace()
                val key = readString()
                skipSpace()
                expect(':')
                found[key] = readValue(depth + 1)
            }
            return found
        }

        private fun readArray(depth: Int): List<Any?> {
            val found = ArrayList<Any?>()
            readItems(']') { found.add(readValue(depth + 1)) }
            return found
        }

        private fun readItems(close: Char, readItem: () -> Unit) {
            at++
            skipSpace()
            if (peek() == close) {
                at++
                return
            }
            while (true) {
                readItem()
                skipSpace()
                if (peek() == close) break
                expect(',')
            }
            at++
        }

        private fun readString(): String {
            expect('"')
            val out = StringBuilder()
            while (peek() != '"') {
                val char = text[at++]
                out.append(if (char == '\\') readEscape() else char)
            }
            at++
            return out.toString()
        }

        private fun readEscape(): Char {
            val char = peek()
            at++
            return when (char) {
                'b' -> '\b'
                'f' -> '\u000c'
                'n' -> '\n'
                'r' -> '\r'
                't' -> '\t'
                'u' -> readCode()
                '"', '\\', '/' -> char
                else -> throw IllegalArgumentException("an unknown escape at character $at")
            }
        }

        private fun readCode(): Char {
            require(at + 4 <= text.length) { "it ends in an escape" }
            at += 4
            return text.substring(at - 4, at).toInt(16).toChar()
        }

        private fun readNumber(): Any {
            val start = at
            while (at < text.length && text[at] in "+-0123456789.eE") at++
            val word = text.substring(start, at)
            require(NUMBER.matches(word)) { "no value at character $start" }
            return word.toLongOrNull() ?: BigDecimal(word).toDouble()
        }

        private fun readWord(word: String, value: Any?): Any? {
            require(text.startsWith(word, at)) { "no value at character $at" }
            at += word.length
            return value
        }

        private fun expect(char: Char) {
            require(peek() == char) { "$char is missing at character $at" }
            at++
        }

        private fun peek(): Char {
            require(at < text.length) { "it ends too early" }
            return text[at]
        }

        private fun skipSpace() {
            while (at < text.length && text[at] in " \t\r\n") at++
        }
    }

    private val NUMBER = Regex("-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?")
}

/** A JSON object, read by keys. Each reader throws [IllegalArgumentException] for another type than it names. */
internal class JsonObject(private val values: Map<String, Any?>) {
    val keys: Set<String> get() = values.keys

    fun has(key: String): Boolean = values[key] != null

    fun text(key: String): String = values[key] as? String ?: fail(key, "text")

    fun textOrNull(key: String): String? = if (has(key)) text(key) else null

    fun long(key: String): Long = values[key] as? Long ?: fail(key, "a whole number")

    fun longOrNull(key: String): Long? = if (has(key)) long(key) else null

    fun double(key: String): Double = doubleOrNull(key) ?: fail(key, "a number")

    fun doubleOrNull(key: String): Double? =
        when (val value = values[key]) {
            null -> null
            is Number -> value.toDouble()
            else -> fail(key, "a number")
        }

    fun flag(key: String): Boolean = values[key] as? Boolean ?: fail(key, "true or false")

    fun list(key: String): List<Any?> = values[key] as? List<*> ?: fail(key, "a list")

    fun texts(key: String): List<String> = list(key).map { it as? String ?: fail(key, "a list of texts") }

    fun objects(key: String): List<JsonObject> = list(key).map { JsonObject(asObject(it) ?: fail(key, "a list of objects")) }

    fun child(key: String): JsonObject = childOrNull(key) ?: fail(key, "an object")

    fun childOrNull(key: String): JsonObject? = if (has(key)) JsonObject(asObject(values[key]) ?: fail(key, "an object")) else null

    /** The values as text, as options have them: flags in lower case. */
    fun asTexts(): Map<String, String> = values.mapValues { it.value.toString() }

    fun raw(key: String): Any? = values[key]

    @Suppress("UNCHECKED_CAST") // JSON's keys are texts.
    private fun asObject(value: Any?): Map<String, Any?>? = value as? Map<String, Any?>

    private fun fail(key: String, wanted: String): Nothing = throw IllegalArgumentException("$key is not $wanted")

    companion object {
        fun parse(text: String): JsonObject {
            @Suppress("UNCHECKED_CAST") // as above
            val found = Json.parse(text) as? Map<String, Any?>
            return JsonObject(requireNotNull(found) { "it is not an object" })
        }
    }
}
