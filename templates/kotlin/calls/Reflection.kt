package bundler.calls

import kotlinx.coroutines.runBlocking
import java.lang.reflect.Constructor
import java.lang.reflect.Executable
import java.lang.reflect.InvocationTargetException
import java.lang.reflect.Method
import java.lang.reflect.Modifier
import kotlin.coroutines.intrinsics.suspendCoroutineUninterceptedOrReturn

/** Call a public method of an object. Throws what it throws, and [NoSuchMethodException]. */
internal fun Any.call(name: String, vararg arguments: Any?): Any? =
    unwrap { find(javaClass, javaClass.methods.filter { it.name == name && !it.isStatic }, name, arguments).invoke(this, *arguments) }

/** Call a function that suspends, and wait for its result. Throws as [call]. */
internal fun Any.await(name: String, vararg arguments: Any?): Any? {
    val target = this
    return runBlocking { suspendCoroutineUninterceptedOrReturn { target.call(name, *arguments, it) } }
}

/** Call a public static method. Throws as [call]. */
internal fun Class<*>.callStatic(name: String, vararg arguments: Any?): Any? =
    unwrap { find(this, methods.filter { it.name == name && it.isStatic }, name, arguments).invoke(null, *arguments) }

/** Call a public constructor. Throws as [call]. */
internal fun Class<*>.create(vararg arguments: Any?): Any =
    unwrap { find(this, constructors.map { it as Constructor<*> }, "constructor", arguments).newInstance(*arguments) }

/** Call a private constructor. Throws as [call]. */
internal fun Class<*>.createPrivately(vararg arguments: Any?): Any =
    unwrap { find(this, declaredConstructors.map { it as Constructor<*> }, "constructor", arguments).apply { isAccessible = true }.newInstance(*arguments) }

/** The value of a private field. */
internal fun Any.peek(name: String): Any =
    checkNotNull(javaClass.getDeclaredField(name).apply { isAccessible = true }.get(this))

private val Method.isStatic get() = Modifier.isStatic(modifiers)

private fun <T : Executable> find(kind: Class<*>, known: List<T>, name: String, arguments: Array<out Any?>): T =
    known.firstOrNull { !it.isSynthetic && fits(it.parameterTypes, arguments) }
        ?: throw NoSuchMethodException("${kind.simpleName} has no $name of ${arguments.size} arguments")

private fun fits(types: Array<Class<*>>, arguments: Array<out Any?>) =
    types.size == arguments.size && types.indices.all { arguments[it] == null || types[it].kotlin.javaObjectType.isInstance(arguments[it]) }

private inline fun <T> unwrap(work: () -> T): T =
    try {
        work()
    } catch (error: InvocationTargetException) {
        throw error.targetException
    }
