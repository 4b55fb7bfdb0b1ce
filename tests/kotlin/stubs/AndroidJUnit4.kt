package androidx.test.ext.junit.runners

public class AndroidJUnit4
