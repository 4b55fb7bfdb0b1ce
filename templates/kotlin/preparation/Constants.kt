package bundler.loader

/** Inputs of a model that always have the same value, as its preprocessing declares. */
internal class Constants(private val values: JsonObject, private val inputs: List<Port>) {
    private val tensors = values.keys.associateWith(::make)

    /** A new tensor with the value. */
    fun allocate(name: String): Tensor {
        val value = tensors.getValue(name)
        return if (value.type == ElementType.STRING) value else Tensor.of(value.type, *value.sizes()).also { it.fillFrom(value) }
    }

    /** Write the value into a tensor. Throws [InputException] where it does not fit there. */
    fun fill(name: String, tensor: Tensor?) {
        val value = tensors.getValue(name)
        val fitting = requireTensor(name, tensor, value.type, value.sizes())
        if (value.type != ElementType.STRING) {
            fitting.fillFrom(value)
        } else if (!fitting.strings().contentEquals(value.strings())) {
            throw InputException("input '${name.take(80)}' has another text than the preprocessing declares", next = "leave its making to the loader")
        }
    }

    /** A single number fills the whole input; sizes that the model leaves open are 1 then. */
    private fun make(name: String): Tensor {
        val port = inputs.first { it.name == name }
        val value = values.raw(name)
        val shape = if (value is List<*>) measure(value) else port.shape.orEmpty().map { it as? Long ?: 1L }
        val items = ArrayList<Any>()
        flatten(value, items)
        val sizes = shape.toLongArray()
        val count = countElements(sizes)
        if (value !is List<*>) repeat(count - 1) { items.add(items.first()) }
        if (port.type == ElementType.STRING) return Tensor.strings(Array(count) { items[it].toString() }, *sizes)
        val made = Tensor.of(port.type, *sizes)
        val writer = ElementWriter(made)
        for (at in 0 until count) writer.put(at, encode(port.type, items[at]))
        return made
    }

    private fun encode(type: ElementType, item: Any): Long =
        when {
            item is Boolean -> Encoding.encode(type, if (item) 1.0 else 0.0)
            item is Long && type == ElementType.INT64 -> item
            else -> Encoding.encode(type, (item as Number).toDouble())
        }

    private fun measure(value: Any?): List<Long> =
        if (value is List<*>) listOf(value.size.toLong()) + measure(value.firstOrNull()) else emptyList()

    private fun flatten(value: Any?, into: MutableList<Any>) {
        if (value is List<*>) value.forEach { flatten(it, into) } else if (value != null) into.add(value)
    }
}
