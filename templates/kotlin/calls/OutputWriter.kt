package bundler.calls

import java.io.File

/** Writes outputs into a folder in the form of a golden set. No name of a model names a file. */
internal class OutputWriter(private val folder: File) {
    private val samples = ArrayList<Map<String, Any?>>()

    /** How many samples were written. */
    val count get() = samples.size

    /** Write the outputs of the next sample, by their names in the model. */
    fun add(outputs: Map<String, Any?>) {
        folder.mkdirs()
        val names = outputs.keys.toList()
        val entries = outputs.mapValues { (name, tensor) -> write(checkNotNull(tensor), "$count-${names.indexOf(name)}.bin") }
        samples.add(mapOf("name" to "$count", "inputs" to emptyMap<String, Any?>(), "outputs" to entries))
    }

    /** Write the index, last. */
    fun finish() {
        folder.mkdirs()
        val index = mapOf("synthetic" to false, "seed" to null, "unstable_outputs" to emptyList<String>(), "samples" to samples)
        File(folder, "index.json").writeText(Json.write(index))
    }

    /** Tensors are little-endian, as all machines are that Java and ONNX Runtime both have. */
    private fun write(tensor: Any, file: String): Map<String, Any?> {
        val type = checkNotNull(tensor.call("getType")).call("getKey")
        val entry = mapOf("kind" to "tensor", "type" to type, "shape" to readShape(tensor).toList())
        if (type == "str") return entry + ("values" to readTexts(tensor).toList())
        val bytes = readBytes(tensor)
        File(folder, file).outputStream().channel.use { while (bytes.hasRemaining()) it.write(bytes) }
        return entry + ("file" to file)
    }
}
