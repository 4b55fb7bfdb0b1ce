package bundler.loader

import java.text.Normalizer

/**
 * Cleans text as BERT's tokenizers do. Letters, accents and marks are those of this machine's version of Unicode, which
 * differs from the tokenizers' own library in rare characters that came late.
 */
internal class BertNormalizer(data: JsonObject) {
    private val clean = data.flag("clean_text")
    private val spaceIdeographs = data.flag("handle_chinese_chars")
    private val lower = data.flag("lowercase")
    private val strip = if (data.has("strip_accents")) data.flag("strip_accents") else lower

    fun normalize(text: String): String {
        val plain = StringBuilder()
        eachCode(text) { code ->
            when {
                clean && isRemoved(code) -> Unit
                clean && isBlank(code) -> plain.append(' ')
                spaceIdeographs && isIdeograph(code) -> plain.append(' ').appendCodePoint(code).append(' ')
                else -> plain.appendCodePoint(code)
            }
        }
        val bare = if (strip) removeAccents(plain) else plain
        return if (lower) makeLower(bare) else bare.toString()
    }

    private fun removeAccents(text: CharSequence): CharSequence {
        val kept = StringBuilder()
        eachCode(Normalizer.normalize(text, Normalizer.Form.NFD)) { code ->
            if (Character.getType(code) != Character.NON_SPACING_MARK.toInt()) kept.appendCodePoint(code)
        }
        return kept
    }

    /** Each character for itself: what stands around it does not count, nor the language of the machine. */
    private fun makeLower(text: CharSequence): String {
        val made = StringBuilder()
        eachCode(text) { code -> if (code == DOTTED_I) made.append("i\u0307") else made.appendCodePoint(Character.toLowerCase(code)) }
        return made.toString()
    }

    private companion object {
        const val DOTTED_I = 0x130
        val IDEOGRAPHS =
            intArrayOf(
                *intArrayOf(0x3400, 0x4dbf, 0x4e00, 0x9fff, 0xf900, 0xfaff, 0x20000, 0x2a6df),
                *intArrayOf(0x2a700, 0x2b81f, 0x2b920, 0x2ceaf, 0x2f800, 0x2fa1f),
            )

        /** Control and format characters of the version of Unicode that the tokenizers' own library has. */
        val REMOVED =
            intArrayOf(
                *intArrayOf(0, 8, 0xb, 0xc, 0xe, 0x1f, 0x7f, 0x9f, 0xad, 0xad, 0x600, 0x605, 0x61c, 0x61c, 0x6dd, 0x6dd, 0x70f, 0x70f),
                *intArrayOf(0x180e, 0x180e, 0x200b, 0x200f, 0x202a, 0x202e, 0x2060, 0x2064, 0x2066, 0x206f, 0xe000, 0xf8ff),
                *intArrayOf(0xfeff, 0xfeff, 0xfff9, 0xfffb, 0xfffd, 0xfffd, 0x110bd, 0x110bd, 0x1bca0, 0x1bca3, 0x1d173, 0x1d17a),
                *intArrayOf(0xe0001, 0xe0001, 0xe0020, 0xe007f, 0xf0000, 0xffffd, 0x100000, 0x10fffd),
            )

        fun isIdeograph(code: Int) = code >= 0x3400 && isIn(IDEOGRAPHS, code)

        fun isRemoved(code: Int) = (code < 0x20 || code >= 0x7f) && isIn(REMOVED, code)
    }
}

/** Cuts at blanks, which it drops, and around each punctuation mark. */
internal object BertSplitter : WordSplitter {
    override fun split(text: String, each: (String) -> Unit) {
        var start = 0
        var at = 0
        while (at < text.length) {
            val code = text.codePointAt(at)
            val next = at + Character.charCount(code)
            val mark = isPunctuation(code)
            if (mark || isBlank(code)) {
                if (at > start) each(text.substring(start, at))
                if (mark) each(text.substring(at, next))
                start = next
            }
            at = next
        }
        if (at > start) each(text.substring(start, at))
    }

    private fun isPunctuation(code: Int): Boolean =
        if (code < 0x80) {
            code in 33..47 || code in 58..64 || code in 91..96 || code in 123..126
        } else {
            when (Character.getType(code).toByte()) {
                Character.CONNECTOR_PUNCTUATION, Character.DASH_PUNCTUATION, Character.START_PUNCTUATION, Character.END_PUNCTUATION,
                Character.INITIAL_QUOTE_PUNCTUATION, Character.FINAL_QUOTE_PUNCTUATION, Character.OTHER_PUNCTUATION,
                -> true
                else -> false
            }
        }
}

/** Unicode's white space, the same on every machine. */
internal fun isBlank(code: Int): Boolean =
    code in 9..13 || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 || code in 0x2000..0x200a ||
        code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000

/** Whether a code is in one of [ranges]: the first and the last of each, one after the other. */
internal fun isIn(ranges: IntArray, code: Int): Boolean {
    for (at in ranges.indices step 2) if (code >= ranges[at] && code <= ranges[at + 1]) return true
    return false
}

internal inline fun eachCode(text: CharSequence, each: (Int) -> Unit) {
    var at = 0
    while (at < text.length) {
        val code = Character.codePointAt(text, at)
        each(code)
        at += Character.charCount(code)
    }
}
