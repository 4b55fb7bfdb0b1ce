"""Prepare data for calibration or for the golden set."""
