package bundler.loader

/**
 * The tokenizer of a model, read from its `tokenizer.json`: WordPiece as BERT's, or byte-level BPE as GPT-2's and
 * RoBERTa's. It can be used by several threads at once.
 */
public class Tokenizer internal constructor(private val parts: TokenizerParts) {
    /** Ids with those of special tokens around them, at most [most]. Throws [InputException] for text that has no tokens. */
    internal fun encode(text: String, most: Int): IntArray {
        requireWhole(text)
        val found = IntList()
        for (piece in parts.added.split(text)) {
            if (piece.id != null) found.add(piece.id) else encodePiece(piece.text, found)
        }
        val room = most - parts.before.size - parts.after.size
        if (room < 0) throw InputException("$most tokens are too few for the tokenizer's special tokens alone")
        val kept = found.toArray(Math.min(found.size, room))
        return (parts.before + kept + parts.after).also {
            if (it.isEmpty()) throw InputException("the tokenizer returns no token for the text", next = "give text that is not empty")
        }
    }

    /** Whether padding goes before the tokens. */
    internal val padsLeft: Boolean get() = parts.padsLeft

    private fun encodePiece(text: String, into: IntList) {
        for (piece in parts.addedNormalized.split(parts.normalize(text))) {
            if (piece.id != null) into.add(piece.id) else parts.split(piece.text) { word -> parts.model.encode(word, into) }
        }
    }

    private fun requireWhole(text: String) {
        var at = 0
        while (at < text.length) {
            val code = text.codePointAt(at)
            if (code in 0xd800..0xdfff) throw InputException("the text has half of a surrogate pair at character $at", next = "repair the text")
            at += Character.charCount(code)
        }
    }
}

/** What a `tokenizer.json` consists of. [before] and [after] are the special tokens around a text. */
internal class TokenizerParts(
    val normalize: (String) -> String,
    private val splitter: WordSplitter,
    val model: WordModel,
    val added: AddedTokens,
    val addedNormalized: AddedTokens,
    val before: IntArray,
    val after: IntArray,
    val padsLeft: Boolean,
) {
    fun split(text: String, each: (String) -> Unit) = splitter.split(text, each)
}

/** Cuts normalised text into words. */
internal fun interface WordSplitter {
    fun split(text: String, each: (String) -> Unit)
}

/** Makes tokens of one word. */
internal fun interface WordModel {
    fun encode(word: String, into: IntList)
}

/** Whole numbers that become more. */
internal class IntList {
    private var values = IntArray(64)
    var size = 0
        private set

    fun add(value: Int) {
        if (size == values.size) values = values.copyOf(size * 2)
        values[size++] = value
    }

    fun toArray(count: Int): IntArray = values.copyOf(count)
}
