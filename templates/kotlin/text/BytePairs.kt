package bundler.loader

import java.util.PriorityQueue
import java.util.regex.Pattern

/** Cuts text as GPT-2's tokenizer does, and writes each byte of it as one visible character. */
internal class ByteSplitter(private val addSpace: Boolean, private val useWords: Boolean) : WordSplitter {
    override fun split(text: String, each: (String) -> Unit) {
        if (text.isEmpty()) return
        val whole = if (addSpace && !text.startsWith(" ")) " $text" else text
        if (!useWords) return each(show(whole))
        val words = WORDS.matcher(whole)
        while (words.find()) each(show(words.group()))
    }

    private fun show(text: String): String {
        val bytes = text.toByteArray(Charsets.UTF_8)
        return String(CharArray(bytes.size) { SHOWN[bytes[it].toInt() and 0xff] })
    }

    private companion object {
        private const val BLANK = "\\t-\\r\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
        val WORDS: Pattern =
            Pattern.compile(
                "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^$BLANK\\p{L}\\p{N}]+|[$BLANK]+(?![^$BLANK])|[$BLANK]+",
            )

        /** Bytes that are visible characters of Latin-1 stand for themselves; the others follow after U+0100, in order. */
        val SHOWN =
            CharArray(256).also { shown ->
                var next = 256
                for (byte in 0..255) {
                    val visible = byte in 33..126 || byte in 161..172 || byte in 174..255
                    shown[byte] = (if (visible) byte else next++).toChar()
                }
            }
    }
}

/** Joins the pair of neighbours that comes first in the list of merges, and of equal ones the first, again and again. */
internal class BytePairs(data: JsonObject) : WordModel {
    private val vocabulary = readVocabulary(data)
    private val unknown = data.textOrNull("unk_token")?.let { vocabulary[it] }
    private val whole = data.raw("ignore_merges") == true

    /** By the ids of a pair: its place in the list, and in the lower half the id of what it becomes. */
    private val merges = readMerges(data.list("merges"))

    init {
        for (key in listOf("continuing_subword_prefix", "end_of_word_suffix")) {
            if (!data.textOrNull(key).isNullOrEmpty()) throw refuse("model", "BPE with $key")
        }
        if (data.raw("byte_fallback") == true) throw refuse("model", "BPE with byte_fallback")
        if (data.has("dropout") && data.double("dropout") > 0) throw refuse("model", "BPE with dropout")
        if (data.raw("fuse_unk") == true) throw refuse("model", "BPE with fuse_unk")
    }

    override fun encode(word: String, into: IntList) {
        val id = if (whole) vocabulary[word] else null
        if (id != null) return into.add(id)
        val found = IntList()
        for (char in word) (vocabulary[char.toString()] ?: unknown)?.let(found::add)
        for (part in Joining(found.toArray(found.size), merges).join()) if (part >= 0) into.add(part)
    }

    /** Each is `"a b"`, or `["a", "b"]` in newer files. */
    private fun readMerges(list: List<Any?>): Map<Long, Long> {
        val found = HashMap<Long, Long>(list.size * 2)
        list.forEachIndexed { rank, merge ->
            val pair = if (merge is List<*>) merge.map { it as String } else (merge as String).split(' ')
            require(pair.size == 2) { "merge $rank is not of two tokens" }
            found[join(find(pair[0]), find(pair[1]))] = join(rank, find(pair[0] + pair[1]))
        }
        return found
    }

    private fun find(token: String) = requireNotNull(vocabulary[token]) { "its vocabulary lacks a token of its merges" }
}

/** One word while its parts are joined. A part that went into the one before it is -1. */
private class Joining(private val parts: IntArray, private val merges: Map<Long, Long>) {
    private val next = IntArray(parts.size) { it + 1 }
    private val before = IntArray(parts.size) { it - 1 }
    private val queue = PriorityQueue<Long>()

    fun join(): IntArray {
        for (at in parts.indices) offer(at)
        while (true) {
            val best = queue.poll() ?: return parts
            val at = best.toInt()
            val merge = find(at) ?: continue
            if (merge ushr 32 == best ushr 32) apply(at, merge.toInt()) // else it was offered before its parts changed
        }
    }

    private fun apply(at: Int, id: Int) {
        val right = next[at]
        parts[at] = id
        parts[right] = -1
        next[at] = next[right]
        if (next[at] < parts.size) before[next[at]] = at
        offer(at)
        if (before[at] >= 0) offer(before[at])
    }

    private fun offer(at: Int) {
        find(at)?.let { queue.add(join((it ushr 32).toInt(), at)) }
    }

    /** The merge of a part with the next one. */
    private fun find(at: Int): Long? =
        if (parts[at] < 0 || next[at] >= parts.size) null else merges[join(parts[at], parts[next[at]])]
}

/** Two numbers as one, which is ordered by the first. */
private fun join(high: Int, low: Int): Long = high.toLong() shl 32 or low.toLong()
