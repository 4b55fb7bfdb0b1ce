package bundler.calls

import java.io.File

/** The loader of a bundle, in the package that its [request] names, and the class by which the bundle is opened. */
internal class Loader(private val request: JsonObject) {
    private val type = Class.forName(request.text("class"))
    private val context = request.textOrNull("assets")?.let { Class.forName("android.content.Context").create(File(it)) }
    private val payload =
        if (context == null) find("ResourcesKt").callStatic("findPayload", type) else find("AssetPayload").create(context, request.text("payload"))
    private val host = if (context == null) find("JvmHost").create() else find("AndroidHost").create(context)
    private val options = find("OpenOptions\$Builder").create().call("strict", false)!!.call("build")
    private val tensor = find("Tensor")
    private val elements = find("ElementType").enumConstants.associateBy { it.call("getKey") }

    /** The bundle without its generated classes. */
    fun openDirectly(): AutoCloseable =
        find("LoadedBundle").callStatic("openBlocking", payload, host, request.text("sha256"), options) as AutoCloseable

    /** As an app opens it that waits. */
    fun openBlocking(): AutoCloseable = type.callStatic("openBlocking", *listOfNotNull(context, options).toTypedArray()) as AutoCloseable

    /** As an app opens it that goes on meanwhile. */
    fun open(): AutoCloseable {
        val given = if (context == null) listOf(options, payload) else listOf(context, options)
        return checkNotNull(type.getField("Companion").get(null)).await("open", *given.toTypedArray()) as AutoCloseable
    }

    /** As an app opens it, with no more than one component, and on a variant that an app cannot choose. */
    fun openVariant(component: String, variant: String): AutoCloseable {
        val opener = find("BundleOpener").create(payload, host, request.text("sha256"), options)
        val config = checkNotNull(opener.call("getConfig"))
        val chosen = config.pick("getComponents", component)
        val tried = checkNotNull(opener.call("openVariant", chosen, chosen.pick("getVariants", variant)))
        val opened = tried.call("getOpened") ?: throw Fault("it does not open: ${tried.call("getReason")}")
        val models = mapOf(component to opener.call("finish", chosen, opened, emptyMap<String, String>()))
        return type.createPrivately(find("LoadedBundle").createPrivately(models)) as AutoCloseable
    }

    private fun Any.pick(list: String, name: String): Any = (call(list) as List<*>).first { it!!.call("getName") == name }!!

    /** Reproduce the golden set as the self-test of a [model] does, where [call] answers in its place. */
    fun test(model: Any, call: (Array<*>) -> Any) {
        val config = model.peek("opened").call("getConfig")
        val test = find("GoldenTest").create(model.peek("component"), config, model.peek("payload"))
        test.call("run", model.call("getReport"), call)
    }

    /** An array of this loader's tensors, some of which may be missing. */
    fun gather(tensors: List<Any?>): Any {
        val made = java.lang.reflect.Array.newInstance(tensor, tensors.size)
        tensors.forEachIndexed { place, value -> java.lang.reflect.Array.set(made, place, value) }
        return made
    }

    /** The inputs of the first recorded samples, at most [count], by name. */
    fun readSamples(golden: String, count: Int): List<Map<String, Any?>> {
        val index = JsonObject.parse(String(read("$golden/index.json"), Charsets.UTF_8))
        return index.objects("samples").take(count).map { sample ->
            val inputs = sample.child("inputs")
            inputs.keys.associateWith { name -> inputs.childOrNull(name)?.takeIf { it.text("kind") == "tensor" }?.let { makeTensor(it, golden) } }
        }
    }

    /** Files of a golden set are little-endian, as all machines are that Java and ONNX Runtime both have. */
    private fun makeTensor(value: JsonObject, golden: String): Any {
        val shape = value.list("shape").map { it as Long }.toLongArray()
        if (value.text("type") == "str") return checkNotNull(tensor.callStatic("strings", value.texts("values").toTypedArray(), shape))
        val made = checkNotNull(tensor.callStatic("of", elements.getValue(value.text("type")), shape))
        readBytes(made).put(read("$golden/${value.text("file")}"))
        return made
    }

    private fun read(path: String) = checkNotNull(payload).call("read", path) as ByteArray

    private fun find(name: String) = Class.forName("${request.text("loader")}.$name")
}
