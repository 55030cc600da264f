"""What integration tests drive: workers as processes, and records on both sides."""
