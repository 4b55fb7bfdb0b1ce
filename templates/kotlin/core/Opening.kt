package bundler.loader

import kotlinx.coroutines.async
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.buffer
import kotlinx.coroutines.flow.channelFlow
import kotlinx.coroutines.flow.flow

/** What a flow of opening a bundle gives: its progress, and at the end the bundle. */
public sealed class Opening<out T> {
    /**
     * A step has begun.
     *
     * @property progress what is done
     */
    public class Doing internal constructor(public val progress: OpenProgress) : Opening<Nothing>() {
        override fun toString(): String = progress.toString()
    }

    /**
     * The bundle is open; who collects closes it.
     *
     * @property bundle the bundle
     */
    public class Ready<out T> internal constructor(public val bundle: T) : Opening<T>()
}

/** The steps of [work], which gets [options] that report to the flow; each collector starts it. */
public fun flowOfSteps(options: OpenOptions, work: suspend (OpenOptions) -> Unit): Flow<OpenProgress> = channelFlow {
    work(options.reportTo { trySend(it) })
}.buffer(Channel.UNLIMITED)

/**
 * Each collector opens a bundle of its own, by [open], which gets [options] that report to the flow. Where the collection
 * ends before the bundle was handed over, it is closed.
 */
public fun <T : AutoCloseable> flowOfOpening(options: OpenOptions, open: suspend (OpenOptions) -> T): Flow<Opening<T>> = flow {
    val steps = Channel<OpenProgress>(Channel.UNLIMITED)
    var opened: T? = null
    try {
        coroutineScope {
            val work = async {
                try {
                    open(options.reportTo { steps.trySend(it) }).also { opened = it }
                } finally {
                    steps.close()
                }
            }
            for (step in steps) emit(Opening.Doing(step))
            work.await()
        }
        val bundle = checkNotNull(opened)
        opened = null // from here on it is the collector's
        emit(Opening.Ready(bundle))
    } finally {
        opened?.close()
    }
}
