"""Files and text: what every room needs once."""
