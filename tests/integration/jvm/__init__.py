"""Bundles for the Java virtual machine: built, taken apart, and used as a program in Kotlin or Java would."""
