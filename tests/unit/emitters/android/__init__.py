"""What is written for Android."""
