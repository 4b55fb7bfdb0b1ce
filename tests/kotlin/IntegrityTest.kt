package bundler.loader

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import java.io.File
import java.io.RandomAccessFile

class IntegrityTest {
    @TempDir
    lateinit var folder: File

    private fun copy(name: String = "cnn") = File(folder, "copy").also { payload(name).copyRecursively(it) }

    private fun flip(file: File, at: Long) {
        RandomAccessFile(file, "rw").use {
            it.seek(at)
            val byte = it.read()
            it.seek(at)
            it.write(byte xor 1)
        }
    }

    private fun openCopy(copy: File, store: File? = null, verify: Verify = Verify.ONCE) =
        LoadedBundle.openBlocking(FolderPayload(copy), host(store), digest("cnn"), OpenOptions(verify = verify))

    @Test
    fun `an altered model is refused`() {
        val copy = copy()
        flip(File(copy, "models/cpu/model.onnx"), 100)
        val error = assertThrows(IntegrityException::class.java) { openCopy(copy) }
        assertTrue("models/cpu/model.onnx" in error.message!! && "does not match its checksum" in error.message!!, error.message)
        assertTrue("install the bundle again" in error.message!!)
    }

    @Test
    fun `an altered configuration is refused`() {
        val copy = copy()
        flip(File(copy, "runtime.json"), 40)
        val error = assertThrows(IntegrityException::class.java) { openCopy(copy) }
        assertTrue("runtime.json" in error.message!!, error.message)
    }

    @Test
    fun `a missing file is refused`() {
        val copy = copy()
        File(copy, "models/cpu/model.onnx").delete()
        val error = assertThrows(IntegrityException::class.java) { openCopy(copy) }
        assertTrue("cannot read models/cpu/model.onnx" in error.message!!, error.message)
    }

    @Test
    fun `an altered golden set is refused`() {
        val copy = copy()
        flip(File(copy, "golden/000/out-0.bin"), 0)
        openCopy(copy).use { bundle ->
            val error = assertThrows(IntegrityException::class.java) { bundle.selfTestBlocking() }
            assertTrue("golden set of model was altered" in error.message!!, error.message)
        }
    }

    @Test
    fun `a check is remembered until a file changes`() {
        val (copy, store) = copy() to File(folder, "store")
        openCopy(copy, store).close()
        val record = store.listFiles()!!.single { it.name.startsWith("verified-") }
        val written = record.lastModified()
        openCopy(copy, store).close()
        assertEquals(written, record.lastModified())
        val model = File(copy, "models/cpu/model.onnx")
        flip(model, 100)
        model.setLastModified(written - 60_000)
        assertThrows(IntegrityException::class.java) { openCopy(copy, store) }
        assertThrows(IntegrityException::class.java) { openCopy(copy, store, Verify.ALWAYS) }
    }

    @Test
    fun `a damaged record counts as none`() {
        val (copy, store) = copy() to File(folder, "store")
        openCopy(copy, store).close()
        val record = store.listFiles()!!.single { it.name.startsWith("verified-") }
        record.writeBytes(ByteArray(50) { -1 })
        openCopy(copy, store).close()
    }

    @Test
    fun `a store that cannot be written costs a check and nothing else`() {
        val file = File(folder, "file").also { it.writeText("no folder") }
        openCopy(copy(), file).use { assertTrue(it.selfTestBlocking().single().passed) }
    }

    @Test
    fun `what was compiled for another chip does not run`() {
        val copy = copy()
        val file = File(copy, "runtime.json")
        val compiled = """"compiled": {"provider": "P", "devices": ["57"], "sdk": "1", "statement": "", "names": ["SM8650"], "partners": []}"""
        val text = file.readText().replace("\"compiled\": null", compiled)
        assertTrue("SM8650" in text)
        file.writeText(text)
        fun openOn(name: String?) {
            val phone = object : Host by JvmHost() {
                override val chip: String? = name
            }
            LoadedBundle.openBlocking(FolderPayload(copy), phone, sha256(file.readBytes())).close()
        }
        val error = assertThrows(IncompatibleException::class.java) { openOn("SM8550") }
        assertTrue("it was compiled for SM8650, this chip is SM8550" in error.message!!, error.message)
        listOf("SM8650", "sm8650", "SM8650P", null).forEach(::openOn)
    }

    @Test
    fun `a schema of another version says who wrote it`() {
        val text = File(payload("cnn"), "runtime.json").readText()
        val later = assertThrows(IncompatibleException::class.java) { BundleConfig.read(text.replace("\"schema\": 4", "\"schema\": 99")) }
        assertTrue("a later version of bundler wrote it" in later.message!!, later.message)
    }

    @Test
    fun `a path that leads out is refused`() {
        val text = File(payload("cnn"), "runtime.json").readText()
        for (path in listOf("../x", "/etc/passwd", "a/../../b", "C:/x", "..\\\\x")) {
            val altered = text.replace("models/cpu/model.onnx", path)
            val error = assertThrows(IntegrityException::class.java) { BundleConfig.read(altered) }
            assertTrue("names a file outside" in error.message!!, error.message)
        }
    }

    @Test
    fun `what is no JSON is refused`() {
        val deep = "[".repeat(100_000)
        for (text in listOf("", "{", "nul", "[1,]", "{\"a\" 1}", "\"\\x\"", "01", "1e99999999", deep, "{} {}", "[1 2]", "\"\\u12\"")) {
            assertThrows(IntegrityException::class.java, { BundleConfig.read(text) }, text.take(20))
        }
    }

    @Test
    fun `the files of a jar are mapped where they lie`() {
        val jar = File(System.getProperty("jar"))
        val payload = ArchivePayload(jar, System.getProperty("prefix"))
        LoadedBundle.openBlocking(payload, host(), sha256(payload.read("runtime.json"))).use {
            assertTrue(it.selfTestBlocking().single().passed)
        }
        assertTrue(payload.list("golden").size > 2)
        assertThrows(java.io.IOException::class.java) { payload.map("nothing", 0, 1) }
    }

    @Test
    fun `models with data beside them are unpacked once out of a jar`() {
        val payload = ArchivePayload(File(System.getProperty("external.jar")), System.getProperty("external.prefix"))
        val store = File(folder, "store")
        repeat(2) {
            LoadedBundle.openBlocking(payload, host(store), sha256(payload.read("runtime.json"))).use {
                assertTrue(it.selfTestBlocking().single().passed)
            }
        }
        val unpacked = store.listFiles()!!.single { it.name.startsWith("unpacked-") }
        val data = unpacked.walkTopDown().filter { it.isFile }.maxByOrNull { it.length() }!!
        flip(data, 100)
        data.setLastModified(1_000_000_000_000)
        assertThrows(IntegrityException::class.java) {
            LoadedBundle.openBlocking(payload, host(store), sha256(payload.read("runtime.json")))
        }
    }

    @Test
    fun `what another archive has compressed is refused with what to do`() {
        val file = File(folder, "fat.jar")
        java.util.zip.ZipOutputStream(file.outputStream()).use { zip ->
            zip.putNextEntry(java.util.zip.ZipEntry("payload/runtime.json"))
            zip.write(ByteArray(1000))
        }
        val error = assertThrows(IncompatibleException::class.java) {
            LoadedBundle.openBlocking(ArchivePayload(file, "payload/"), host(), digest("cnn"))
        }
        assertTrue("is compressed in" in error.message!! && "FolderPayload" in error.message!!, error.message)
    }

    @Test
    fun `what is no archive is refused`() {
        for (bytes in listOf(ByteArray(0), ByteArray(10), ByteArray(5000) { 7 })) {
            val file = File(folder, "x.jar").also { it.writeBytes(bytes) }
            assertThrows(java.io.IOException::class.java) { ArchivePayload(file, "").read("runtime.json") }
        }
    }
}
