package bundler.loader

import ai.onnxruntime.OrtEnvironment
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.BeforeEach
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import java.io.File

/** The one variant needs a context. No provider of this machine's runtime makes any: a model takes its place. */
class PrewarmTest {
    @TempDir
    lateinit var folder: File

    private val root get() = File(folder, "payload")
    private val store get() = File(folder, "store")
    private val config get() = File(root, "runtime.json")
    private val component get() = BundleConfig.read(config.readText()).components.single()

    @BeforeEach
    fun write() {
        payload("cnn").copyRecursively(root)
        val prepare = "\"prepare\": {\"kind\": \"context\", \"thing\": \"P context\", \"options\": {}}"
        config.writeText(config.readText().replace("\"prepare\": null", prepare))
        assertTrue("P context" in config.readText())
    }

    private fun phone(software: String = "1", place: File? = store): Host =
        object : Host by JvmHost(store = place) {
            override val software = software
        }

    private fun open(host: Host = phone()) = LoadedBundle.openBlocking(FolderPayload(root), host, sha256(config.readBytes()))

    private fun prewarm(host: Host = phone()) =
        runBlocking { LoadedBundle.prewarm(FolderPayload(root), host, sha256(config.readBytes())) }.single()

    private fun prepared(software: String = "1") =
        Prepared(component.variants.single(), "model/cpu", phone(software), OrtEnvironment.getEnvironment().version)

    private fun putInPlace() {
        val draft = prepared().startDraft()
        File(root, "models/cpu/model.onnx").copyTo(File(draft, Prepared.MODEL))
        prepared().publish(draft)
    }

    private fun refusal(host: Host = phone()) = assertThrows(IncompatibleException::class.java) { open(host) }.message!!

    @Test
    fun `what was not generated yet says how`() {
        assertTrue("has not been generated on this device yet; call prewarm()" in refusal(), refusal())
    }

    @Test
    fun `a provider that generates nothing is asked once`() {
        val outcome = prewarm()
        assertFalse(outcome.ready)
        assertEquals("the runtime wrote no P context", outcome.reason)
        assertTrue("the runtime wrote no P context" in refusal(), refusal())
        assertEquals(outcome.reason, prewarm().reason)
        assertEquals(listOf("files.txt"), store.listFiles { file -> file.name.startsWith("prepared-") }!!.single().list()!!.toList())
        assertTrue(store.list()!!.none { it.startsWith("making-") || it.startsWith("profile-") }, store.list()!!.toList().toString())
    }

    @Test
    fun `what is in its place is opened and stays`() {
        putInPlace()
        open().use { assertTrue(it.selfTestBlocking().single().passed) }
        assertTrue(prewarm().ready)
    }

    @Test
    fun `an update of the system makes it stale`() {
        putInPlace()
        assertTrue("has not been generated" in refusal(phone("2")))
        prepared("2").publish(prepared("2").startDraft(), "refused")
        assertEquals(1, store.listFiles { file -> file.name.startsWith("prepared-") }!!.size)
    }

    @Test
    fun `an altered one does not run, and is generated again`() {
        putInPlace()
        val model = File(prepared().folder, Prepared.MODEL)
        model.writeBytes(model.readBytes().also { it[100] = (it[100] + 1).toByte() })
        model.setLastModified(1_000_000)
        assertTrue("was altered" in refusal(), refusal())
        assertEquals("the runtime wrote no P context", prewarm().reason)
    }

    @Test
    fun `an interrupted attempt leaves nothing that is used`() {
        val draft = prepared().startDraft()
        File(root, "models/cpu/model.onnx").copyTo(File(draft, Prepared.MODEL))
        assertTrue("has not been generated" in refusal(), refusal())
        prewarm()
        assertFalse(draft.exists())
    }

    @Test
    fun `without space or a folder it says so`() {
        val file = File(folder, "file").also { it.writeText("no folder") }
        assertTrue("cannot be kept" in prewarm(phone(place = file)).reason, prewarm(phone(place = file)).reason)
        assertTrue("there is no private folder" in prewarm(phone(place = null)).reason)
    }

    @Test
    fun `a damaged list is none`() {
        putInPlace()
        for (text in listOf("", "ready\nx", "ready\n0 1 ../../payload/runtime.json", "ready\nz z model.onnx")) {
            File(prepared().folder, "files.txt").writeText(text)
            refusal()
        }
    }

    @Test
    fun `a flow tells the steps`() = runBlocking {
        val steps = flowOfSteps(OpenOptions()) { options ->
            LoadedBundle.prewarm(FolderPayload(root), phone(), sha256(config.readBytes()), options)
        }.toList()
        assertEquals(listOf("GENERATING", "REJECTED"), steps.map { it.step.name })
    }
}
