package bundler.loader

import java.util.concurrent.locks.ReentrantReadWriteLock
import kotlin.concurrent.read
import kotlin.concurrent.write

/** Keeps something open while it is used: closing waits for the calls that run, and refuses those that come. */
internal class Lifetime(private val what: String) {
    val lock = ReentrantReadWriteLock()

    @Volatile
    var closed = false
        private set

    /** Throws [ClosedException]. */
    inline fun <T> use(work: () -> T): T =
        lock.read {
            requireOpen()
            work()
        }

    /** Free what is kept, once. */
    fun close(free: () -> Unit) {
        val isFirst = synchronized(this) { !closed.also { closed = true } }
        if (isFirst) lock.write(free)
    }

    fun requireOpen() {
        if (closed) throw ClosedException("$what is closed", next = "open it again")
    }
}
