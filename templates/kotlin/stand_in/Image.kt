package android.media

/** As the class for bitmaps. */
public class Image private constructor()
