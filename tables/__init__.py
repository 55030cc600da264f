"""State kept on the target through changelog topics, one module per table."""
