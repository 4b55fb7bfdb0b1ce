"""Estimate which nodes a mobile provider takes."""
