package bundler.loader

import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.io.File

private val FOLDER = File(System.getProperty("texts"))

private fun readFile(name: String) = File(FOLDER, "$name.tokenizer.json").readBytes()

class TextPreparationTest {
    private val tokenizers = JsonObject.parse("{\"all\": ${File(FOLDER, "tokenizers.json").readText()}}").objects("all")
    private val ports = listOf("ids", "mask", "types").map { Port(it, ElementType.INT64, listOf(1L, null), false) }

    private fun read(preparation: TextPreparation, name: String, row: TokenRow): List<Long> {
        val tensor = preparation.allocate(name, row)
        preparation.fill(name, row, tensor)
        return List(tensor.size) { tensor.longs().get(it) }
    }

    @Test
    fun `every text becomes the tokens that Python makes of it`() {
        for (data in tokenizers) {
            val wrong = ArrayList<String>()
            val cases = data.objects("cases")
            for (case in cases) {
                val preparation = TextPreparation(case.child("record"), ports)
                val row = preparation.encode(case.text("text"), preparation.readTokenizer(readFile(data.text("name"))))
                for (name in listOf("ids", "mask", "types")) {
                    val found = read(preparation, name, row)
                    if (found != case.list(name)) wrong.add("${data.text("name")} $name ${Json.write(case.text("text"))}: $found, not ${case.list(name)}")
                }
            }
            assertEquals(emptyList<String>(), wrong, "${wrong.size} of ${cases.size}")
            assertTrue(cases.size > 100)
        }
    }

    private fun plain(name: String) = TokenizerFile.parse(String(readFile(name)))

    @Test
    fun `what is no text is refused`() {
        val half = assertThrows(InputException::class.java) { plain("bert").encode("ab\ud800", 9) }
        assertTrue("half of a surrogate pair at character 2" in half.message!!, half.message)
        assertThrows(InputException::class.java) { plain("gpt").encode("", 9) }
        val few = assertThrows(InputException::class.java) { plain("bert").encode("a", 1) }
        assertTrue("too few for the tokenizer's special tokens" in few.message!!, few.message)
    }

    @Test
    fun `another file is refused`() {
        val preparation = TextPreparation(tokenizers.first().objects("cases").first().child("record"), ports)
        val error = assertThrows(IntegrityException::class.java) { preparation.readTokenizer(readFile("gpt")) }
        assertTrue("not the one that the model was checked with" in error.message!!, error.message)
    }

    @Test
    fun `tensors that do not fit are refused`() {
        val preparation = TextPreparation(tokenizers.first().objects("cases").first().child("record"), ports)
        val row = TokenRow(intArrayOf(1, 2, 3), 5, 0)
        assertThrows(InputException::class.java) { preparation.fill("ids", row, Tensor.of(ElementType.INT64, 1, 4)) }
        assertThrows(InputException::class.java) { preparation.fill("ids", row, Tensor.of(ElementType.INT32, 1, 5)) }
        assertThrows(InputException::class.java) { preparation.fill("ids", row, null) }
    }

    private fun alter(name: String, vararg changes: Pair<String, String>): BundleException {
        var text = String(readFile(name))
        for ((before, after) in changes) {
            assertTrue(before in text, before)
            text = text.replace(before, after)
        }
        return assertThrows(IncompatibleException::class.java) { TokenizerFile.parse(text) }
    }

    @Test
    fun `other kinds of tokenizers are refused, and what to do is said`() {
        val refused =
            listOf(
                "normalizer Lowercase" to alter("bert", "\"type\":\"BertNormalizer\"" to "\"type\":\"Lowercase\""),
                "pre-tokenizer Whitespace" to alter("bert", "\"type\":\"BertPreTokenizer\"" to "\"type\":\"Whitespace\""),
                "model Unigram" to alter("bert", "\"type\":\"WordPiece\"" to "\"type\":\"Unigram\""),
                "model BPE that is not byte-level" to alter("gpt", "\"pre_tokenizer\":{\"type\":\"ByteLevel\"" to "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\""),
                "byte_fallback" to alter("gpt", "\"byte_fallback\":false" to "\"byte_fallback\":true"),
                "post-processor Odd" to alter("roberta", "\"type\":\"RobertaProcessing\"" to "\"type\":\"Odd\""),
            )
        for ((says, error) in refused) {
            assertTrue(says in error.message!!, error.message)
            assertTrue("make token ids with the tokenizer's own library" in error.message!!, error.message)
        }
        for (text in listOf("", "[]", "{}", "{\"model\": 3}")) {
            assertThrows(IncompatibleException::class.java, { TokenizerFile.parse(text) }, text)
        }
    }

    @Test
    fun `a long word takes no more time than many short ones`() {
        val word = "abcdefgh".repeat(40_000)
        val started = System.nanoTime()
        assertEquals(512, plain("gpt").encode(word, 512).size)
        assertTrue(System.nanoTime() - started < 20_000_000_000)
    }

    @Test
    fun `the language of the machine does not count`() {
        val before = java.util.Locale.getDefault()
        try {
            java.util.Locale.setDefault(java.util.Locale.forLanguageTag("tr"))
            assertArrayEquals(plain("bert").encode("it is", 9), plain("bert").encode("IT IS", 9))
        } finally {
            java.util.Locale.setDefault(before)
        }
    }
}
