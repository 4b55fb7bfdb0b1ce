package bundler.loader

/** A token that is found in text before anything else is done with it. */
internal class AddedToken(data: JsonObject) {
    val id = data.long("id").toInt()
    val content = data.text("content")
    val word = data.flag("single_word")
    val left = data.flag("lstrip")
    val right = data.flag("rstrip")
    val normalized = data.flag("normalized")
}

/** A part of a text: a token that was added, or text between such tokens. */
internal class Piece(val text: String, val id: Int?)

/** Finds the longest of these tokens at each place of a text; [spell] is how one is written there. */
internal class AddedTokens(tokens: List<AddedToken>, spell: (AddedToken) -> String) {
    private val spelled = tokens.map { spell(it) to it }.filter { it.first.isNotEmpty() }.sortedByDescending { it.first.length }
    private val firsts = spelled.map { it.first[0] }.toSet()

    fun split(text: String): List<Piece> {
        val found = ArrayList<Piece>()
        var start = 0
        var at = 0
        while (at < text.length) {
            val match = if (text[at] in firsts) spelled.firstOrNull { text.startsWith(it.first, at) } else null
            if (match == null) {
                at++
                continue
            }
            val (spelling, token) = match
            val end = at + spelling.length
            if (token.word && !standsAlone(text, at, end)) {
                at = end
                continue
            }
            var first = at
            var last = end
            if (token.left) while (first > start && isBlank(text[first - 1].code)) first--
            if (token.right) while (last < text.length && isBlank(text[last].code)) last++
            if (first > start) found.add(Piece(text.substring(start, first), null))
            found.add(Piece(text.substring(first, last), token.id))
            start = last
            at = last
        }
        if (start < text.length) found.add(Piece(text.substring(start), null))
        return found
    }

    private fun standsAlone(text: String, start: Int, end: Int) =
        (start == 0 || !isWord(text.codePointBefore(start))) && (end == text.length || !isWord(text.codePointAt(end)))

    private fun isWord(code: Int) =
        Character.isLetterOrDigit(code) || code == '_'.code || Character.getType(code) == Character.NON_SPACING_MARK.toInt()
}
