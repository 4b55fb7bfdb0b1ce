"""Manifest, software bill of materials and report."""
