"""Bundles for the Java virtual machine: a jar with the model, its loader in Kotlin, and its runtime beside it."""
