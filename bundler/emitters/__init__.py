"""Emitters: finished artifacts in, a project for one ecosystem out."""
