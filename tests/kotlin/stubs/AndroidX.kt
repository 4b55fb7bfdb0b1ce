// What the test on a phone uses of AndroidX and JUnit 4, which are in a repository that tests here do not reach.

package androidx.test.platform.app

public class Instrumentation {
    public val targetContext: android.content.Context get() = throw UnsupportedOperationException()
}

public object InstrumentationRegistry {
    @JvmStatic
    public fun getInstrumentation(): Instrumentation = Instrumentation()
}
