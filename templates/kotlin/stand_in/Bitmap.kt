package android.graphics

/** In place of Android's class, which functions of generated classes take: nobody calls those here. */
public class Bitmap private constructor()
