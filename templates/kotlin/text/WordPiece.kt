package bundler.loader

/** The vocabulary of a model: ids by token. */
internal fun readVocabulary(data: JsonObject): Map<String, Int> {
    val words = data.child("vocab")
    val found = HashMap<String, Int>(words.keys.size * 2)
    for (word in words.keys) found[word] = words.long(word).toInt()
    return found
}

/** The longest token that a word begins with, then the longest that goes on from there; a word that has none is unknown. */
internal class WordPiece(data: JsonObject) : WordModel {
    private val vocabulary = readVocabulary(data)
    private val unknown = requireNotNull(vocabulary[data.text("unk_token")]) { "its vocabulary lacks ${data.text("unk_token")}" }
    private val prefix = data.text("continuing_subword_prefix")
    private val longest = data.long("max_input_chars_per_word")

    override fun encode(word: String, into: IntList) {
        val pieces = if (word.codePointCount(0, word.length) > longest) null else cut(word)
        pieces?.forEach(into::add) ?: into.add(unknown)
    }

    private fun cut(word: String): List<Int>? {
        val found = ArrayList<Int>()
        var start = 0
        while (start < word.length) {
            var end = word.length
            var id: Int? = null
            while (end > start) {
                val piece = word.substring(start, end)
                id = vocabulary[if (start > 0) prefix + piece else piece]
                if (id != null) break
                end = word.offsetByCodePoints(end, -1)
            }
            found.add(id ?: return null)
            start = end
        }
        return found
    }
}
