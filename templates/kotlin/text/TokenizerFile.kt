package bundler.loader

/** Reads a `tokenizer.json`. */
internal object TokenizerFile {
    /**
     * The tokenizer in [file], which has the SHA-256 [digest]. Throws [IntegrityException] for another file, and
     * [IncompatibleException] for a kind of tokenizer that this loader lacks.
     */
    fun read(file: ByteArray, digest: String): Tokenizer {
        val found = sha256(file)
        if (found != digest) {
            throw IntegrityException(
                "the tokenizer is not the one that the model was checked with",
                why = "its SHA-256 is $found, not $digest",
                next = "give the tokenizer.json with which the bundle was built",
            )
        }
        return parse(String(file, Charsets.UTF_8))
    }

    /** Throws as [read]. */
    fun parse(text: String): Tokenizer {
        try {
            return make(JsonObject.parse(text))
        } catch (error: IllegalArgumentException) {
            throw IncompatibleException("the tokenizer cannot be read", why = firstLine(error), next = IDS, cause = error)
        } catch (error: ClassCastException) {
            throw IncompatibleException("the tokenizer cannot be read", why = firstLine(error), next = IDS, cause = error)
        }
    }

    private fun make(data: JsonObject): Tokenizer {
        val normalize = readNormalizer(data.childOrNull("normalizer"))
        val splitter = readSplitter(data.childOrNull("pre_tokenizer"))
        val model = readModel(data.child("model"), splitter is ByteSplitter)
        val added = data.objects("added_tokens").map(::AddedToken)
        val (before, after) = readEnds(data.childOrNull("post_processor"))
        val parts =
            TokenizerParts(
                normalize = normalize,
                splitter = splitter,
                model = model,
                added = AddedTokens(added.filterNot { it.normalized }) { it.content },
                addedNormalized = AddedTokens(added.filter { it.normalized }) { normalize(it.content) },
                before = before,
                after = after,
                padsLeft = data.childOrNull("padding")?.textOrNull("direction")?.lowercase() == "left",
            )
        return Tokenizer(parts)
    }

    private fun readNormalizer(data: JsonObject?): (String) -> String =
        when (data?.text("type")) {
            null -> { text -> text }
            "BertNormalizer" -> BertNormalizer(data)::normalize
            else -> throw refuse("normalizer", data.text("type"))
        }

    private fun readSplitter(data: JsonObject?): WordSplitter =
        when (data?.text("type")) {
            "BertPreTokenizer" -> BertSplitter
            "ByteLevel" -> ByteSplitter(data.flag("add_prefix_space"), data.raw("use_regex") != false)
            else -> throw refuse("pre-tokenizer", data?.text("type") ?: "none")
        }

    private fun readModel(data: JsonObject, bytes: Boolean): WordModel {
        val kind = data.textOrNull("type") ?: if (data.has("merges")) "BPE" else "WordPiece"
        return when {
            kind == "WordPiece" && !bytes -> WordPiece(data)
            kind == "BPE" && bytes -> BytePairs(data)
            else -> throw refuse("model", if (kind == "BPE") "BPE that is not byte-level" else kind)
        }
    }

    /** The ids of special tokens before and after a single text. */
    private fun readEnds(data: JsonObject?): Pair<IntArray, IntArray> =
        when (data?.text("type")) {
            null, "ByteLevel" -> IntArray(0) to IntArray(0)
            "BertProcessing", "RobertaProcessing" -> intArrayOf(readEnd(data, "cls")) to intArrayOf(readEnd(data, "sep"))
            "TemplateProcessing" -> readTemplate(data)
            "Sequence" -> data.objects("processors").filter { it.text("type") != "ByteLevel" }.let { steps ->
                if (steps.size > 1) throw refuse("post-processor", "Sequence of ${steps.joinToString(", ") { it.text("type") }}")
                readEnds(steps.firstOrNull())
            }
            else -> throw refuse("post-processor", data.text("type"))
        }

    /** `["[CLS]", 101]`. */
    private fun readEnd(data: JsonObject, key: String) = (data.list(key)[1] as Long).toInt()

    private fun readTemplate(data: JsonObject): Pair<IntArray, IntArray> {
        val items = data.objects("single")
        val place = items.indexOfFirst { it.has("Sequence") }
        val special = data.child("special_tokens")
        fun ids(part: List<JsonObject>) =
            part.flatMap { special.child(it.child("SpecialToken").text("id")).list("ids") }.map { (it as Long).toInt() }.toIntArray()
        if (items.count { it.has("Sequence") } != 1) throw refuse("post-processor", "TemplateProcessing without exactly one text")
        if (items.any { (it.childOrNull("Sequence") ?: it.child("SpecialToken")).long("type_id") != 0L }) {
            throw refuse("post-processor", "TemplateProcessing with type ids")
        }
        return ids(items.take(place)) to ids(items.drop(place + 1))
    }
}

private const val IDS = "make token ids with the tokenizer's own library, and fill the inputs of the model with them"

/** The error for a part of a tokenizer that this loader lacks. */
internal fun refuse(part: String, kind: String) =
    IncompatibleException(
        "this loader has no tokenizer with the $part $kind",
        why = "it has WordPiece as BERT's and byte-level BPE as GPT-2's",
        next = IDS,
    )
