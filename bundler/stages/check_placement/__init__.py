"""Estimate which nodes are assigned to a mobile provider."""
