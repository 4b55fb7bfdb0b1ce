package bundler.loader

import ai.onnxruntime.OnnxTensor
import ai.onnxruntime.OrtEnvironment
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.DoubleBuffer
import java.nio.FloatBuffer
import java.nio.IntBuffer
import java.nio.LongBuffer
import java.nio.ShortBuffer

/**
 * A tensor in memory outside of the Java heap, which the runtime reads and writes without a copy.
 *
 * Make it once and fill it before each call. The buffers that [floats] and the others give are views of the same memory,
 * in the machine's byte order, and begin at the first element. While a call uses a tensor, closing it waits for the end of
 * that call, and nobody else should write to it.
 *
 * @property type the type of its elements
 * @property size the number of its elements
 */
public class Tensor private constructor(
    public val type: ElementType,
    private val dimensions: LongArray,
    private var memory: ByteBuffer?,
    private var texts: Array<String>?,
) : AutoCloseable {
    private var native: OnnxTensor? = null
    private var closed = false
    private var users = 0

    public val size: Int = countElements(dimensions)

    /** A copy of its shape. */
    public val shape: LongArray get() = dimensions.clone()

    /** Its bytes, from the first to the last, in the machine's byte order. */
    public fun bytes(): ByteBuffer = view().duplicate().order(ByteOrder.nativeOrder())

    /** Its elements, for float32. */
    public fun floats(): FloatBuffer = checked(ElementType.FLOAT32).asFloatBuffer()

    /** Its elements, for float64. */
    public fun doubles(): DoubleBuffer = checked(ElementType.FLOAT64).asDoubleBuffer()

    /** Its elements, for int16, or the bits of float16 and bfloat16. */
    public fun shorts(): ShortBuffer = checked(ElementType.INT16, ElementType.FLOAT16, ElementType.BFLOAT16).asShortBuffer()

    /** Its elements, for int32. */
    public fun ints(): IntBuffer = checked(ElementType.INT32).asIntBuffer()

    /** Its elements, for int64. */
    public fun longs(): LongBuffer = checked(ElementType.INT64).asLongBuffer()

    /** A copy of its elements, for text. */
    public fun strings(): Array<String> {
        requireOpen()
        return texts?.clone() ?: throw wrongType("text")
    }

    /** Free the memory that the runtime holds, after the calls that use it. Its buffers must not be used any more. */
    @Synchronized
    override fun close() {
        closed = true
        if (users == 0) free()
    }

    /** The runtime's value of this memory, made at the first call. It stays until [release] is called as often. */
    @Synchronized
    internal fun acquire(environment: OrtEnvironment): OnnxTensor {
        requireOpen()
        val found = native ?: makeNative(environment).also { native = it }
        users++
        return found
    }

    @Synchronized
    internal fun release() {
        users--
        if (closed && users == 0) free()
    }

    private fun free() {
        native?.close()
        native = null
        memory = null
        texts = null
    }

    private fun makeNative(environment: OrtEnvironment): OnnxTensor {
        val strings = texts
        return if (strings != null) {
            OnnxTensor.createTensor(environment, strings, dimensions)
        } else {
            OnnxTensor.createTensor(environment, bytes(), dimensions, type.java)
        }
    }

    internal fun sizes(): LongArray = dimensions

    /** Copy the elements of [other], which has the same type and shape. */
    internal fun fillFrom(other: Tensor) {
        bytes().put(other.bytes())
    }

    private fun view(): ByteBuffer {
        requireOpen()
        return memory ?: throw wrongType("numbers")
    }

    private fun checked(vararg types: ElementType): ByteBuffer {
        if (type !in types) throw wrongType(types.joinToString(" or ") { it.key })
        return bytes()
    }

    private fun wrongType(wanted: String) =
        InputException("this tensor holds ${type.key}, not $wanted", next = "read it as ${type.key}")

    private fun requireOpen() {
        if (closed) throw ClosedException("the tensor is closed", next = "make another")
    }

    override fun toString(): String = "${type.key}[${dimensions.joinToString(", ")}]"

    public companion object {
        /** A tensor of zeros. Throws [InputException] for text, or a size that is negative or too large. */
        @JvmStatic
        public fun of(type: ElementType, vararg shape: Long): Tensor {
            if (type == ElementType.STRING) throw InputException("text has no zeros", next = "use Tensor.strings")
            val bytes = countElements(shape).toLong() * type.bytes
            if (bytes > Int.MAX_VALUE) throw InputException("a tensor of $bytes bytes is too large for one buffer")
            return Tensor(type, shape.clone(), allocate(bytes.toInt()), null)
        }

        /** A tensor of zeros of float32. */
        @JvmStatic
        public fun floats(vararg shape: Long): Tensor = of(ElementType.FLOAT32, *shape)

        /** A tensor of text. */
        @JvmStatic
        public fun strings(values: Array<String>, vararg shape: Long): Tensor {
            if (values.size != countElements(shape)) {
                throw InputException("${values.size} texts do not fill the shape [${shape.joinToString(", ")}]")
            }
            return Tensor(ElementType.STRING, shape.clone(), null, values.clone())
        }

        /**
         * A tensor over memory of yours, which is not copied: it is read at each call. Throws [InputException] where the
         * buffer is on the Java heap, in another byte order, or of another size.
         */
        @JvmStatic
        public fun wrap(type: ElementType, memory: ByteBuffer, vararg shape: Long): Tensor {
            val bytes = countElements(shape).toLong() * type.bytes
            val problem =
                when {
                    !memory.isDirect -> "it is on the Java heap"
                    memory.order() != ByteOrder.nativeOrder() -> "its byte order is not the machine's"
                    memory.remaining().toLong() != bytes -> "it has ${memory.remaining()} bytes left, and the shape needs $bytes"
                    else -> return Tensor(type, shape.clone(), memory.slice().order(ByteOrder.nativeOrder()), null)
                }
            throw InputException(
                "this buffer cannot be the memory of a tensor",
                why = problem,
                next = "use ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder())",
            )
        }

        internal fun allocate(bytes: Int): ByteBuffer = ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder())

        /** A value that the runtime allocated, copied into memory of our own; it is closed. */
        internal fun take(value: OnnxTensor): Tensor =
            value.use {
                val type = ElementType.entries.firstOrNull { known -> known.java == value.info.type }
                val shape = value.info.shape
                when (type) {
                    null -> throw InferenceException("the runtime gave a tensor of ${value.info.type}, which this API cannot hold")
                    ElementType.STRING -> strings(flatten(value.value), *shape)
                    else -> of(type, *shape).also { taken -> if (taken.size > 0) taken.bytes().put(value.byteBuffer) }
                }
            }

        private fun flatten(value: Any?): Array<String> {
            val found = ArrayList<String>()
            fun add(item: Any?) {
                if (item is Array<*>) item.forEach(::add) else found.add(item.toString())
            }
            add(value)
            return found.toTypedArray()
        }
    }
}

/** Throws [InputException] for a negative size, or more elements than a buffer can have. */
internal fun countElements(shape: LongArray): Int {
    var count = 1L
    for (size in shape) {
        if (size < 0 || size > Int.MAX_VALUE) throw InputException("[${shape.joinToString(", ")}] is not a shape", why = "$size is not a size")
        count *= size
        if (count > Int.MAX_VALUE) throw InputException("a tensor of shape [${shape.joinToString(", ")}] is too large")
    }
    return count.toInt()
}
