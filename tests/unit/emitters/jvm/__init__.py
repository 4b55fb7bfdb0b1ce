"""What is written for Java and Kotlin."""
