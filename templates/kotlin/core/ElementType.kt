package bundler.loader

import ai.onnxruntime.OnnxJavaType

/**
 * The types of elements that the runtime's Java API takes.
 *
 * @property key the name in `runtime.json`, which is NumPy's
 * @property bytes the size of an element; 0 for text
 */
public enum class ElementType(public val key: String, public val bytes: Int, internal val java: OnnxJavaType) {
    FLOAT32("float32", 4, OnnxJavaType.FLOAT),
    FLOAT64("float64", 8, OnnxJavaType.DOUBLE),
    FLOAT16("float16", 2, OnnxJavaType.FLOAT16),
    BFLOAT16("bfloat16", 2, OnnxJavaType.BFLOAT16),
    INT8("int8", 1, OnnxJavaType.INT8),
    INT16("int16", 2, OnnxJavaType.INT16),
    INT32("int32", 4, OnnxJavaType.INT32),
    INT64("int64", 8, OnnxJavaType.INT64),
    UINT8("uint8", 1, OnnxJavaType.UINT8),
    BOOL("bool", 1, OnnxJavaType.BOOL),
    STRING("str", 0, OnnxJavaType.STRING),
    ;

    internal companion object {
        /** Throws [IncompatibleException] for a type that the API lacks. */
        fun of(key: String): ElementType =
            entries.firstOrNull { it.key == key }
                ?: throw IncompatibleException("the runtime's Java API has no tensors of $key", next = "use another bundle format")
    }
}
