package bundler.loader

/** What becomes of a text before the model reads it, as `runtime.json` has it. */
internal class TextRecord(data: JsonObject) {
    val digest = data.text("tokenizer_sha256")
    val ids = data.text("ids")
    val mask = data.textOrNull("attention_mask")
    val types = data.textOrNull("type_ids")
    val longest = data.long("max_length").toInt()
    val pads = data.text("padding") == "max_length"
    val pad = data.longOrNull("pad_id")?.toInt() ?: 0
    val constants = data.child("constants")
}

/** Makes a model's inputs of a text as its declared preprocessing says. */
internal class TextPreparation(data: JsonObject, private val inputs: List<Port>) {
    private val record = TextRecord(data)

    /** The inputs that are the same for every text. */
    val constants = Constants(record.constants, inputs)

    constructor(model: LoadedModel) : this(model.preprocessing(), model.inputs)

    /** Throws as [TokenizerFile.read]. */
    fun readTokenizer(file: ByteArray): Tokenizer = TokenizerFile.read(file, record.digest)

    /** The tokens of a text. Throws [InputException] for text without any. */
    fun encode(text: String, tokenizer: Tokenizer): TokenRow {
        val ids = tokenizer.encode(text, record.longest)
        val length = if (record.pads) record.longest else ids.size
        return TokenRow(ids, length, if (tokenizer.padsLeft) length - ids.size else 0)
    }

    /** A tensor for [fill] with these tokens. */
    fun allocate(name: String, row: TokenRow): Tensor = Tensor.of(find(name).type, *shape(name, row))

    /** Write ids, their mask or their types, by the name of the input. Throws [InputException] where that does not fit. */
    fun fill(name: String, row: TokenRow, tensor: Tensor?) {
        val type = find(name).type
        val writer = ElementWriter(requireTensor(name, tensor, type, shape(name, row)))
        for (at in 0 until row.length) writer.put(at, Encoding.encode(type, choose(name, row, at).toDouble()))
    }

    private fun choose(name: String, row: TokenRow, at: Int): Int {
        val id = row.ids.getOrNull(at - row.before)
        return when (name) {
            record.ids -> id ?: record.pad
            record.mask -> if (id == null) 0 else 1
            else -> 0
        }
    }

    private fun find(name: String) = inputs.first { it.name == name }

    private fun shape(name: String, row: TokenRow): LongArray {
        val rank = find(name).shape?.size ?: 2
        return LongArray(rank) { axis -> if (axis == rank - 1) row.length.toLong() else 1 }
    }
}

/** The ids of a text, in [length] places: [before] of padding, the ids, and padding again. */
internal class TokenRow(val ids: IntArray, val length: Int, val before: Int)
