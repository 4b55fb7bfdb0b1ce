"""What describes targets and providers to people: lists, matches, recommendations, the matrix. It reads planning."""
