package bundler.loader

/**
 * One input or output.
 *
 * @property name the model's own name
 * @property type the type of its elements
 * @property shape a size for each axis: a number, the name of a symbol, or null where it is not known; null for an
 *   unknown rank
 * @property optional whether the model has a value for it that counts where it is left out
 */
public class Port internal constructor(
    public val name: String,
    public val type: ElementType,
    public val shape: List<Any?>?,
    public val optional: Boolean,
) {
    /** `float32[batch, 3, 48, 192]`. */
    override fun toString(): String = "${type.key}[${shape?.joinToString(", ") { it?.toString() ?: "?" } ?: "…"}]"

    internal companion object {
        fun read(data: JsonObject): Port {
            val value = data.child("type")
            val kind = value.text("kind")
            if (kind != "tensor") {
                throw IncompatibleException("${data.text("name").take(80)} is a $kind, and this loader takes tensors alone")
            }
            val shape = if (value.has("shape")) value.list("shape").map { if (it is Long || it is String) it else null } else null
            return Port(data.text("name"), ElementType.of(value.text("element_type")), shape, data.flag("optional"))
        }
    }
}

/** Checks tensors against their ports: type, rank, fixed sizes, and one size for each symbol. */
internal class InputCheck(private val ports: List<Port>) {
    /** Throws [InputException]. */
    fun check(values: Array<out Tensor?>) {
        if (values.size != ports.size) {
            throw InputException("${values.size} inputs were given, the model has ${ports.size}", next = "give ${describe()}")
        }
        val symbols = HashMap<String, Long>()
        for ((port, value) in ports.zip(values)) {
            if (value != null) {
                checkTensor(port, value, symbols)
            } else if (!port.optional) {
                throw InputException("input ${show(port)} is missing", next = "give $port")
            }
        }
    }

    private fun checkTensor(port: Port, value: Tensor, symbols: MutableMap<String, Long>) {
        if (value.type != port.type) {
            throw InputException("input ${show(port)} has type ${value.type.key}, the model requires ${port.type.key}")
        }
        val wanted = port.shape ?: return
        val shape = value.sizes()
        if (shape.size != wanted.size) throw misshapen(port, value, "it has ${shape.size} dimensions, not ${wanted.size}")
        for ((axis, size) in wanted.withIndex()) {
            val given = shape[axis]
            if (size is Long && size != given) throw misshapen(port, value, "axis $axis is $given, not $size")
            if (size is String) {
                val first = symbols.getOrPut(size) { given }
                if (first != given) throw misshapen(port, value, "$size is $given here (axis $axis), and $first in another input")
            }
        }
    }

    private fun misshapen(port: Port, value: Tensor, why: String) =
        InputException("input ${show(port)} is $value", why = why, next = "the model requires $port")

    private fun describe() = ports.joinToString(", ") { "${show(it)}: $it" }.ifEmpty { "none" }

    private fun show(port: Port) = "'${port.name.take(80)}'"
}
