"""Losses, configurations, and the one loop that trains everything; one file a task."""
