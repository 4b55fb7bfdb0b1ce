package bundler.loader

import java.io.IOException
import java.nio.ByteOrder

/** One recorded call. The tensors are read when they are asked for. */
internal class GoldenSample(private val golden: GoldenSet, private val data: JsonObject) {
    val name = data.text("name")

    /** In the order of the model's inputs; null for an optional one that was left out. */
    val inputs: Array<Tensor?> get() = golden.component.inputs.map { golden.read(data.child("inputs"), it.name) }.toTypedArray()

    /** The recorded value of an output; null where there is none. */
    fun output(name: String): Tensor? = golden.read(data.child("outputs"), name)
}

/** The samples that were recorded from the original model. Throws [IntegrityException] where the set was altered. */
internal class GoldenSet(val component: ComponentConfig, private val payload: Payload) {
    private val index: JsonObject

    init {
        checkDigest()
        index = JsonObject.parse(String(payload.read("${component.golden}/index.json"), Charsets.UTF_8))
    }

    val synthetic = index.flag("synthetic")
    val samples = index.objects("samples").map { GoldenSample(this, it) }

    /** By the name of an input: the output that it is in the next step of a stream. */
    val state: Map<String, String> = index.childOrNull("state")?.asTexts().orEmpty()

    fun reference(output: String) = Reference(index.objects("outputs").firstOrNull { it.text("name") == output })

    fun read(values: JsonObject, name: String): Tensor? {
        val value = values.childOrNull(name)?.takeIf { it.text("kind") == "tensor" } ?: return null
        val shape = value.list("shape").map { it as Long }.toLongArray()
        val type = ElementType.of(value.text("type"))
        if (type == ElementType.STRING) return Tensor.strings(value.texts("values").toTypedArray(), *shape)
        val path = value.text("file")
        if (leadsOut(path)) throw IntegrityException("the golden set names a file outside", why = path.take(200))
        return Tensor.of(type, *shape).also { fill(it, payload.read("${component.golden}/$path"), path) }
    }

    private fun fill(tensor: Tensor, data: ByteArray, path: String) {
        val memory = tensor.bytes()
        if (data.size != memory.remaining()) {
            throw IntegrityException("the golden set's $path has ${data.size} bytes, not ${memory.remaining()}")
        }
        memory.put(if (ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN) data else swap(data, tensor.type.bytes))
    }

    private fun swap(data: ByteArray, width: Int) =
        ByteArray(data.size) { data[it / width * width + (width - 1 - it % width)] }

    /** The digest is that of the list of all files with size and SHA-256, sorted by path. */
    private fun checkDigest() {
        val found =
            try {
                sha256(describeFiles().toByteArray())
            } catch (error: IOException) {
                throw IntegrityException("the golden set of ${component.name} cannot be read", why = firstLine(error), cause = error)
            }
        if (found != component.goldenDigest) {
            throw IntegrityException("the golden set of ${component.name} was altered", why = "digest $found, not ${component.goldenDigest}")
        }
    }

    private fun describeFiles(): String {
        val records = payload.list(component.golden).map { path ->
            val data = payload.read(path)
            linkedMapOf("path" to path.removePrefix("${component.golden}/"), "sha256" to sha256(data), "size" to data.size)
        }
        return Json.write(records)
    }
}
