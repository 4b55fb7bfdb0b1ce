"""Execution providers: one file each holds all that bundler knows of it, its name as the runtime has it included."""
