"""Bundles for Android: a Gradle library module in Kotlin, with an app that shows it."""
