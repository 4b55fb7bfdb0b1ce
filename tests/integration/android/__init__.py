"""Modules for Android: built, compiled against the framework's classes, and run on a Java virtual machine."""
